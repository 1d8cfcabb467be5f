/** The documentation as pages with navigation and search, made of Markdown with what the package has. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { micromark } from 'micromark'
import { gfm, gfmHtml } from 'micromark-extension-gfm'
import type { Subject } from './docs.ts'
import { readPassages } from './passages.ts'

const LIST = 'docs/README.md'
const HOME = posix.join('.', LIST).replace('.md', '.html')

/** A section of the list of pages. */
interface Section {
  title: string
  pages: { title: string; path: string }[]
}

/** Writes the pages of the repository to `folder`. `npm run docs:site` replaces them by a site with a reference. */
export function writeSite(root: string, folder: string, { name }: Subject): void {
  const read = (path: string) => readFileSync(join(root, path), 'utf8')
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  const paths = ['.', 'docs', 'docs/decisions'].flatMap((from) =>
    readdirSync(join(root, from))
      .filter((file) => file.endsWith('.md'))
      .map((file) => posix.join(from, file)),
  )
  const sections = readSections(read(LIST))
  for (const path of paths)
    write(toHtmlPath(path), toPage({ name, path, markdown: read(path), sections, paths }))
  const sought = readPassages(root).map(({ path, page, heading, text }) => {
    const title = heading === '' || heading === page ? page : `${page}: ${heading}`
    const anchor = heading === '' ? '' : `#${toSlug(heading)}`
    return { href: toHtmlPath(path) + anchor, title, text }
  })
  write('search.json', JSON.stringify(sought))
  write('site.css', STYLE)
  write('site.js', SCRIPT)
  write('index.html', `<!doctype html><meta http-equiv="refresh" content="0; url=${HOME}">\n`)
}

const toHtmlPath = (path: string): string => path.replace(/\.md$/, '.html')

/** Returns the sections of the list of pages, with paths from the root of the repository. */
function readSections(list: string): Section[] {
  return list
    .split(/^## /m)
    .slice(1)
    .map((text) => ({
      title: text.split('\n', 1)[0] ?? '',
      pages: Array.from(text.matchAll(/^- \[(.*?)\]\((.*?)\)/gm), ([, title = '', path = '']) => ({
        title,
        path: posix.join('docs', path),
      })),
    }))
}

interface PageParts {
  name: string
  path: string
  markdown: string
  sections: readonly Section[]
  /** Paths of all pages. */
  paths: readonly string[]
}

function toPage({ name, path, markdown, sections, paths }: PageParts): string {
  const folder = posix.dirname(path)
  const up = posix.relative(folder, '.') || '.'
  const linkTo = (target: string) => posix.join(up, toHtmlPath(target))
  // The pages are those of this repository. Some have keys as HTML.
  const html = micromark(markdown, {
    allowDangerousHtml: true,
    extensions: [gfm()],
    htmlExtensions: [gfmHtml()],
  })
  const used = new Set<string>()
  const headings: string[] = []
  const body = html
    .replace(/<h([1-4])>(.*?)<\/h\1>/gs, (_, level: string, text: string) => {
      const slug = toSlug(text)
      const id = used.has(slug) ? `${slug}-${used.size}` : slug
      used.add(id)
      if (level === '2')
        headings.push(`<li><a href="#${id}">${text.replace(/<\/?a\b[^>]*>/g, '')}</a></li>`)
      return `<h${level} id="${id}">${text}</h${level}>`
    })
    .replace(/href="([^":#]+)\.md(#[^"]*)?"/g, (whole, target: string, anchor = '') =>
      paths.includes(posix.join(folder, `${target}.md`)) ? `href="${target}.html${anchor}"` : whole,
    )
    .replaceAll('<table>', '<div class="wide" tabindex="0"><table>')
    .replaceAll('</table>', '</table></div>')
  const title = /^# (.*)/m.exec(markdown)?.[1] ?? path
  const nav = sections
    .map(({ title: heading, pages }) => {
      const rows = pages.map((page) => {
        const mark = page.path === path ? ' aria-current="page"' : ''
        return `<li><a href="${linkTo(page.path)}"${mark}>${page.title}</a></li>`
      })
      return `<h2>${heading}</h2><ul>${rows.join('')}</ul>`
    })
    .join('')
  const outline =
    headings.length > 1
      ? `<nav class="outline" aria-label="On this page"><ul>${headings.join('')}</ul></nav>`
      : ''
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title.replaceAll('`', '')} · ${name}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${up}/site.css">
<script type="module" src="${up}/site.js"></script>
<header><a href="${posix.join(up, '..')}/">Playground</a> <a href="${linkTo(LIST)}">Documentation</a>
<input id="search" type="search" placeholder="Search" aria-label="Search the documentation" data-root="${up}/"></header>
<ul id="found" class="found" aria-label="Found" hidden></ul>
<div class="columns">
<details class="pages" open><summary>Pages</summary><nav aria-label="Pages">${nav}</nav></details>
<main>${body}</main>${outline}
</div>
</html>
`
}

/** Returns the id of a heading as GitHub makes it. */
const toSlug = (heading: string): string =>
  heading
    .replace(/<[^>]*>/g, '')
    .replace(/&\w+;/g, '')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-')

const SCRIPT = `// Finds the passages that have all words of the search.
const input = document.querySelector('#search')
const list = document.querySelector('#found')
const pages = document.querySelector('.pages')
if (matchMedia('(max-width: 60rem)').matches) pages.open = false
let loading

async function find() {
  const words = input.value.toLowerCase().split(/\\s+/).filter(Boolean)
  list.hidden = words.length === 0
  if (list.hidden) return
  loading ??= fetch(input.dataset.root + 'search.json').then((response) => response.json())
  const passages = await loading
  const has = (text) => words.every((word) => text.toLowerCase().includes(word))
  const found = passages.filter(({ title, text }) => has(title + ' ' + text))
  const named = found.filter(({ title }) => has(title))
  const best = [...new Set([...named, ...found])].slice(0, 12)
  list.replaceChildren(...best.map(({ href, title, text }) => {
    const link = Object.assign(document.createElement('a'), { href: input.dataset.root + href, textContent: title })
    const row = document.createElement('li')
    row.append(link, ' ', text.slice(0, 140))
    return row
  }))
  if (best.length === 0) list.append(Object.assign(document.createElement('li'), { textContent: 'Nothing was found.' }))
}

input.addEventListener('input', () => void find())
`

const STYLE = `:root { color-scheme: light dark; --line: light-dark(#ddd, #333); --soft: light-dark(#555, #aaa); --fill: light-dark(#f4f4f2, #1d1f23) }
* { box-sizing: border-box }
body { margin: 0; background: light-dark(#fdfdfc, #131417); color: light-dark(#1a1a1a, #e8e8e6); font: 1rem/1.6 system-ui, sans-serif }
a { color: light-dark(#0b57d0, #8ab4f8) }
header { position: sticky; top: 0; z-index: 1; display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; padding: .6rem 1rem; border-bottom: 1px solid var(--line); background: inherit }
header input { flex: 1; min-width: 8rem; max-width: 24rem; margin-left: auto; padding: .4rem .7rem; border: 1px solid var(--line); border-radius: .5rem; font: inherit }
.found { position: sticky; top: 3.2rem; z-index: 1; max-height: 70vh; margin: 0; padding: 1rem 1rem 1rem 2rem; overflow: auto; border-bottom: 1px solid var(--line); background: var(--fill) }
.found li { margin-bottom: .5rem; color: var(--soft) }
.columns { display: grid; grid-template-columns: 15rem minmax(0, 46rem) 13rem; gap: 2rem; justify-content: center; padding: 1rem }
.pages summary { display: none }
.pages h2 { margin: 1rem 0 .2rem; font-size: .8rem; color: var(--soft) }
nav ul { margin: 0; padding: 0; list-style: none }
nav a { display: block; padding: .15rem 0; text-decoration: none }
nav a[aria-current] { font-weight: 600; color: inherit }
.outline { position: sticky; top: 4rem; align-self: start; font-size: .875rem }
h1, h2, h3, h4 { line-height: 1.25; scroll-margin-top: 4rem }
code, pre { font: .875em/1.5 ui-monospace, monospace }
code { padding: .1em .3em; border-radius: .3em; background: var(--fill); overflow-wrap: anywhere }
pre { padding: 1rem; overflow: auto; border-radius: .6rem; background: var(--fill) }
pre code { padding: 0; background: none; overflow-wrap: normal }
.wide { overflow-x: auto }
table { border-collapse: collapse }
th, td { padding: .35rem .6rem; border: 1px solid var(--line); text-align: left; vertical-align: top }
@media (max-width: 60rem) { .columns { display: block } .pages summary { display: list-item; cursor: pointer } .outline { display: none } }
`
