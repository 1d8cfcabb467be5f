/** Writes the documentation for readers that are programs: https://llmstxt.org. */
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Subject {
  name: string
  description: string
}

/** Returns `llms.txt`: the list of pages, which are in `folder` relative to it. */
export function toLlmsText(list: string, { name, description }: Subject, folder: string): string {
  const pages = list.replace(/^# .*\n/, '').replaceAll('](', `](${folder}/`)
  return `# ${name}\n\n> ${description}\n${pages}`
}

/** Writes `llms.txt` into a site, and the Markdown pages that it leads to. */
export function writeDocs(root: string, site: string, subject: Subject): void {
  const list = readFileSync(join(root, 'docs/README.md'), 'utf8')
  writeFileSync(join(site, 'llms.txt'), toLlmsText(list, subject, 'docs'))
  cpSync(join(root, 'docs'), join(site, 'docs'), { recursive: true })
  // Pages of docs/ link to these.
  const others = readdirSync(root).filter((name) => name.endsWith('.md'))
  for (const name of others) cpSync(join(root, name), join(site, name))
}

/**
 * Writes a list of the Markdown pages to `site/`, which the playground links to. `npm run docs:site`
 * replaces it by the site.
 */
export function writePageList(root: string, site: string, { name }: Subject): void {
  const list = readFileSync(join(root, 'docs/README.md'), 'utf8')
  const rows = Array.from(
    list.matchAll(/^- \[(.*?)\]\((.*?)\)/gm),
    ([, text, path]) => `<li><a href="../docs/${path}">${text}</a></li>`,
  )
  const head = `<!doctype html>\n<meta charset="utf-8">\n<title>${name}: documentation</title>`
  mkdirSync(join(site, 'site'), { recursive: true })
  const page = `${head}\n<h1>Documentation</h1>\n<ul>\n${rows.join('\n')}\n</ul>\n`
  writeFileSync(join(site, 'site/index.html'), page)
}
