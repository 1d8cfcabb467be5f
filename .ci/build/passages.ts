/**
 * The passages of the documentation and their vectors, by which the playground knows a question about
 * inorigin. `@inorigin/embed` computes the vectors in Node.js, with the runtime that browsers use.
 */
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { Tokenizer } from '@huggingface/tokenizers'
import type { Plugin } from 'vite'
import type { IndexedPassage } from '../../demo/documentation.ts'

/** Name of the file beside the page. */
const FILE = 'passages.json'

/** Most words of a passage. A longer one is found by its subject, and not by its details. */
const MAX_WORDS = 110

/** Pages that are lists of others, or of refusals. */
const LEFT_OUT = ['README.md', 'conformance.md']

/** A part of a page, below one heading. */
export interface Passage {
  /** Path of the page from the root of the repository. */
  path: string
  page: string
  /** Heading of the section; empty before the first one. */
  heading: string
  /** The text without marks of Markdown. */
  text: string
}

/** Returns the passages of README and `docs/`. */
export function readPassages(root: string): Passage[] {
  const pages = readdirSync(join(root, 'docs'))
    .filter((name) => name.endsWith('.md') && !LEFT_OUT.includes(name))
    .map((name) => `docs/${name}`)
  return ['README.md', ...pages.toSorted()].flatMap((path) =>
    splitPage(path, readFileSync(join(root, path), 'utf8')),
  )
}

/** Divides a page at its headings, and long sections at blank lines and rows of tables. */
function splitPage(path: string, markdown: string): Passage[] {
  const passages: Passage[] = []
  let page = ''
  let heading = ''
  let parts: string[] = []
  let words = 0
  let isCode = false

  const end = (): void => {
    const text = toPlain(parts.join('\n'))
    if (text !== '') passages.push({ path, page, heading, text })
    parts = []
    words = 0
  }
  for (const line of markdown.split('\n')) {
    if (line.startsWith('```')) isCode = !isCode
    const [, marks, title = ''] = isCode ? [] : (/^(#+) (.*)/.exec(line) ?? [])
    if (marks !== undefined) {
      end()
      if (marks === '#') page = toPlain(title)
      else heading = toPlain(title)
      continue
    }
    const canBreak = !isCode && (line === '' || /^[|-]/.test(line))
    const count = line.split(/\s+/).length
    if (canBreak && words + count > MAX_WORDS) end()
    parts.push(line)
    words += count
  }
  end()
  return passages
}

const toPlain = (markdown: string): string =>
  markdown
    .replaceAll(/^```.*$/gm, '')
    .replaceAll(/^\|[-| ]+\|$/gm, '')
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/[*`]+/g, '')
    .replaceAll(/^[-|]\s+/gm, '')
    .replaceAll('|', ' ')
    .replaceAll(/[ \t]+/g, ' ')
    .trim()

/** Function that resolves with the vector of a text. */
export type Embed = (text: string) => Promise<Float32Array>

/** Opens the model in that folder. */
export async function openEmbed(folder: string): Promise<Embed> {
  const { env, InferenceSession, Tensor } = await import('onnxruntime-web')
  env.wasm.numThreads = 1
  const read = (name: string): Uint8Array => readFileSync(join(folder, name))
  const session = await InferenceSession.create(read('model.onnx'), {
    executionProviders: ['wasm'],
    externalData: [{ path: 'table.bin', data: read('table.bin') }],
  })
  const tokenizer = new Tokenizer(
    JSON.parse(String(readFileSync(join(folder, 'tokenizer.json')))),
    {},
  )
  const known = new Map<string, Promise<Float32Array>>()
  const toTensor = (numbers: readonly number[]) =>
    new Tensor('int64', BigInt64Array.from(numbers, BigInt), [1, numbers.length])
  const run = async (text: string): Promise<Float32Array> => {
    const { ids } = tokenizer.encode(text)
    const { vector } = await session.run({
      ids: toTensor(ids),
      mask: toTensor(ids.map(() => 1)),
    })
    return vector?.data as Float32Array
  }
  return (text) => {
    const found = known.get(text) ?? run(text)
    known.set(text, found)
    return found
  }
}

const sentenceOf = (...parts: string[]): string => parts.filter((part) => part !== '').join('. ')

/**
 * Resolves with the vector of a passage: the mean of those of its heading and of the whole. The heading of a
 * section says what it is about, so it has half of the weight.
 */
export async function embedPassage(
  { page, heading, text }: Passage,
  embed: Embed,
): Promise<Float32Array> {
  const [title, whole] = [
    await embed(sentenceOf(page, heading)),
    await embed(sentenceOf(page, heading, text)),
  ]
  return whole.map((number, at) => (number + (title[at] ?? 0)) / 2)
}

const MAX_BYTE = 127

async function toIndexed(passage: Passage, embed: Embed): Promise<IndexedPassage> {
  const vector = await embedPassage(passage, embed)
  const scale = Math.max(...vector.map(Math.abs)) / MAX_BYTE
  const bytes = Int8Array.from(vector, (number) => Math.round(number / scale))
  return {
    path: passage.path,
    title: passage.heading === '' ? passage.page : `${passage.page}: ${passage.heading}`,
    vector: Buffer.from(bytes.buffer).toString('base64'),
    scale,
  }
}

/** Resolves with the index. It takes 8 s on one core, so it is kept until what it is made of changes. */
async function toIndex(root: string): Promise<string> {
  const model = join(root, 'demo/models/embed')
  const passages = readPassages(root)
  const hash = createHash('sha256').update(JSON.stringify(passages))
  for (const file of [join(model, 'model.onnx'), join(root, '.ci/build/passages.ts')])
    hash.update(readFileSync(file))
  const folder = join(root, 'node_modules/.cache/inorigin-passages')
  const kept = join(folder, `${hash.digest('hex')}.json`)
  if (existsSync(kept)) return readFileSync(kept, 'utf8')
  const embed = await openEmbed(model)
  const indexed: IndexedPassage[] = []
  for (const passage of passages) indexed.push(await toIndexed(passage, embed))
  const index = JSON.stringify(indexed)
  mkdirSync(folder, { recursive: true })
  writeFileSync(`${kept}.${process.pid}`, index)
  renameSync(`${kept}.${process.pid}`, kept)
  return index
}

/** `passages.json`: the passages of the documentation, for the playground and its development server. */
export function emitPassages(root: string): Plugin {
  let index: Promise<string> | undefined
  const read = (): Promise<string> => (index ??= toIndex(root))
  return {
    name: 'inorigin:passages',
    async generateBundle() {
      this.emitFile({ type: 'asset', fileName: FILE, source: await read() })
    },
    configureServer(server) {
      server.middlewares.use(`/${FILE}`, (_request, response, next) => {
        read().then((source) => {
          response.setHeader('content-type', 'application/json')
          response.end(source)
        }, next)
      })
    },
  }
}
