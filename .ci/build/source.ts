/** Writes the source of the playground as a page, for those who want to learn from it. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Folders of the playground that hold models and pages of their own. */
const OTHERS = /^(?:models|pipelines)\//

/** Writes `source/index.html` into a site: each module of `demo/`, by its path. */
export function writeSource(root: string, site: string): void {
  const demo = join(root, 'demo')
  const paths = readdirSync(demo, { recursive: true, encoding: 'utf8' })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => /\.(?:ts|css|html)$/.test(path) && !OTHERS.test(path))
  const modules = paths.toSorted().map((path) => {
    const code = toHtml(readFileSync(join(demo, path), 'utf8'))
    return `<details><summary>demo/${path}</summary><pre>${code}</pre></details>`
  })
  const head =
    '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n' +
    '<meta name="viewport" content="width=device-width">\n' +
    '<meta name="color-scheme" content="light dark">\n<title>inorigin: source of the playground</title>'
  const about =
    '<p>Its modules use only the public package, whose entry is <code>src/index.ts</code>.</p>'
  mkdirSync(join(site, 'source'), { recursive: true })
  const page = `${head}\n<h1>Source of the playground</h1>\n${about}\n${modules.join('\n')}\n`
  writeFileSync(join(site, 'source/index.html'), page)
}

function toHtml(code: string): string {
  return code.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
