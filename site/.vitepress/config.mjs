import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'vitepress'

const PAGES = join(import.meta.dirname, '../.pages')

const description = 'A web page as its own inference server'

/** Reads the sections of the list of pages, which is the menu. */
function readSections() {
  const list = readFileSync(join(PAGES, 'docs/README.md'), 'utf8')
  return list
    .split(/^## /m)
    .slice(1)
    .map((section) => ({
      text: section.slice(0, section.indexOf('\n')),
      items: Array.from(section.matchAll(/^- \[(.*?)\]\((.*?)\.md\)/gm), ([, text, path]) => ({
        text,
        link: `/docs/${path.replace(/README$/, '')}`,
      })),
    }))
}

const modules = readdirSync(join(PAGES, 'api'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.md') && name !== 'index.md')
  .map((name) => name.replaceAll('\\', '/').replace(/\.md$/, ''))
  .toSorted()

const reference = {
  text: 'API reference',
  // The name of `sw.js` looks like that of a file, to which VitePress adds no base.
  items: modules.map((name) => ({ text: name.replace(/\/index$/, ''), link: `/api/${name}.html` })),
}

export default defineConfig({
  title: 'inorigin',
  description,
  base: process.env.SITE_BASE ?? '/site/',
  srcDir: '.pages',
  cacheDir: '.vitepress/cache',
  rewrites: Object.fromEntries(
    ['', 'docs/', 'docs/decisions/'].map((at) => [`${at}README.md`, `${at}index.md`]),
  ),
  // The addresses end in `.html`, because a plain file server adds nothing to them.
  cleanUrls: false,
  markdown: { languageAlias: { csp: 'http' } },
  themeConfig: {
    search: { provider: 'local' },
    nav: [
      { text: 'Documentation', link: '/docs/' },
      { text: 'API reference', link: '/api/' },
      { text: 'Changes', link: '/CHANGELOG' },
    ],
    sidebar: [...readSections(), reference],
    outline: [2, 3],
  },
})
