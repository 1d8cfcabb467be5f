/** The code blocks of the documentation. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export const ROOT = join(import.meta.dirname, '../../..')

export interface CodeBlock {
  /** Path of the page from the root, such as `docs/start.md`. */
  page: string
  /** Line of the page before the first line of the code. */
  line: number
  /** Word after the fence, such as `ts`; empty if there is none. */
  language: string
  code: string
}

/** Lists the pages that have code for readers, by their path from the root. */
export function listPages(): string[] {
  const inFolder = (folder: string) =>
    readdirSync(join(ROOT, folder))
      .filter((name) => name.endsWith('.md'))
      .map((name) => (folder === '.' ? name : `${folder}/${name}`))
  const templates = readdirSync(join(ROOT, 'templates')).map((name) => `templates/${name}`)
  return ['.', 'docs', ...templates].flatMap(inFolder)
}

const readPage = (page: string): string => readFileSync(join(ROOT, page), 'utf8')

/** Lists the code blocks of a page in their order. */
export function listBlocks(page: string): CodeBlock[] {
  const text = readPage(page)
  return Array.from(text.matchAll(/^```([^\n]*)\n(.*?)^```$/gms), (match) => ({
    page,
    line: text.slice(0, match.index).split('\n').length,
    language: match[1] ?? '',
    code: match[2] ?? '',
  }))
}

/** Lists the code spans of the text around the blocks, such as `npm start`. */
export function listSpans(page: string): string[] {
  const text = readPage(page).replace(/^```.*?^```$/gms, '')
  return Array.from(text.matchAll(/`([^`\n]+)`/g), ([, span = '']) => span)
}

/** Returns the path of the file that a block is: of a comment in it, or of the line before a JSON. */
export function readFileName({ page, line, code }: CodeBlock): string | null {
  const before = readPage(page).split('\n')[line - 3] ?? ''
  const name =
    /^(?:\/\/|<!--) (\S+\.\w+)(?: -->)?\n/.exec(code) ?? /^The file `(\S+)`:$/.exec(before)
  return name?.[1] ?? null
}

/** Returns the code of the block of a page that is that file. */
export function findFile(page: string, path: string): string {
  const found = listBlocks(page).find((block) => readFileName(block) === path)
  if (!found) throw new Error(`${page} has no block for the file ${path}.`)
  return found.code
}
