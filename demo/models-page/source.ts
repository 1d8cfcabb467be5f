/** Sources of a model that a visitor adds: a repository of the hub, a GGUF file of one, or an address. */
import type { Tag } from '../../src/index.ts'
import type { OwnEntry } from '../own-catalog.ts'

/** Source of a model's files, as a catalog entry has it. */
export type Source =
  | { huggingface: string; file?: string; revision?: string }
  | { gguf: string; huggingface?: never }

/** Addresses of the hub, also without a scheme. */
const HUB = /^(?:https?:\/\/)?(?:www\.)?(?:huggingface\.co|hf\.co)\/(?:api\/models\/)?/i

/** Name of a repository on the hub: an owner and a name. */
const REPOSITORY = /^[A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*$/

/** First parts of paths of the hub that name no model. */
const OTHER_KINDS = ['datasets', 'spaces', 'docs', 'collections']

/** Parts of a path behind which a revision follows, such as `tree/main`. */
const VIEWS = ['tree', 'blob', 'resolve', 'raw']

/** Returns the source that a text means; `undefined` if it means none. */
export function toSource(text: string): Source | undefined {
  const words = text.trim()
  const path = words.replace(HUB, '').replace(/[?#].*$/, '')
  if (path === words && /^\w+:/.test(words)) return toAddress(words)
  const [owner = '', name = '', ...rest] = path.split('/').filter((part) => part !== '')
  const huggingface = `${owner}/${name}`
  if (!REPOSITORY.test(huggingface) || OTHER_KINDS.includes(owner)) return undefined
  const isView = VIEWS.includes(rest[0] ?? '')
  const revision = isView ? rest[1] : undefined
  const file = decodeURIComponent(rest.slice(isView ? 2 : 0).join('/'))
  return {
    huggingface,
    ...(/\.gguf$/i.test(file) && { file }),
    ...(revision !== undefined && revision !== 'main' && { revision }),
  }
}

function toAddress(text: string): Source | undefined {
  if (!URL.canParse(text)) return undefined
  const { protocol, pathname, href } = new URL(text)
  return /^https?:$/.test(protocol) && /\.gguf$/i.test(pathname) ? { gguf: href } : undefined
}

/** Returns a key that two sources share if they are the same, whatever their spelling. */
export function keyOf(source: Source): string {
  if (source.huggingface === undefined) return source.gguf
  return [source.huggingface, source.file ?? ''].join(':').toLowerCase()
}

/** Returns the catalog entry of a source, under a tag that is not taken. */
export function toEntry(source: Source, taken: readonly Tag[]): OwnEntry {
  const wish = toTag(source)
  let tag = wish
  for (let count = 2; taken.includes(tag); count += 1) tag = `${wish}-${count}`
  return { tag, ...source }
}

function toTag(source: Source): Tag {
  if (source.huggingface === undefined)
    return `@me/${toPlain(decodeURIComponent(new URL(source.gguf).pathname))}`
  const repository = source.huggingface.toLowerCase()
  if (source.file === undefined) return `@${repository}`
  return `@${repository.slice(0, repository.indexOf('/'))}/${toPlain(source.file)}`
}

/** Returns the name of a GGUF file, without signs that tags do not have. */
function toPlain(path: string): string {
  const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase()
  const stem = name.replace(/(-\d{5}-of-\d{5})?\.gguf$/, '')
  return stem.replaceAll(/[^a-z0-9._-]+/g, '-').replaceAll(/^[._-]+|[._-]+$/g, '') || 'model'
}
