/** Writes the documentation for readers that are programs: https://llmstxt.org. */
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
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
