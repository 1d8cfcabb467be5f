/**
 * The playground's own catalog: the model that comes with it, and entries that the visitor added by a
 * hub's repository or an address. `start()` serves them.
 */
import type { CatalogInput, Tag } from '../src/index.ts'

const KEY = 'playground:own-catalog'

/** Name of a repository on the hub: an owner and a name. */
const REPOSITORY = /^[A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*$/

export type OwnEntry =
  | { tag: Tag; huggingface: string; file?: string; revision?: string }
  | { tag: Tag; gguf: string }

/** Returns the entries that the visitor added. */
export function ownEntries(): OwnEntry[] {
  return JSON.parse(localStorage.getItem(KEY) ?? '[]') as OwnEntry[]
}

/** Resolves with the catalog for `serve()`. An entry of the visitor takes the place of one with its tag. */
export async function ownCatalog(): Promise<CatalogInput> {
  const added = ownEntries()
  const tags = new Set(added.map(({ tag }) => tag))
  const models = await ownModels()
  return { version: 1, entries: [...added, ...models.filter(({ tag }) => !tags.has(tag))] }
}

/** Adds an entry, in place of an earlier one of its tag. */
export function addOwnEntry(entry: OwnEntry): void {
  write([...ownEntries().filter(({ tag }) => tag !== entry.tag), entry])
}

export function removeOwnEntry(tag: Tag): void {
  write(ownEntries().filter((entry) => entry.tag !== tag))
}

/** Returns the repository that a name or an address of the hub means; `undefined` if none. */
export function toRepository(text: string): string | undefined {
  const path = text.trim().replace(/^https:\/\/huggingface\.co\//, '')
  const name = path.split('/').slice(0, 2).join('/')
  return REPOSITORY.test(name) && !/^https?:/.test(path) ? name : undefined
}

/** Returns the tag for a repository. Tags are in lower case. */
export const toTag = (repository: string): Tag => `@${repository.toLowerCase()}`

/** A GGUF file of a repository, as an address of the hub or without it. */
const HUB_FILE =
  /^(?:https:\/\/huggingface\.co\/)?([\w.-]+\/[\w.-]+)\/(?:(?:blob|resolve)\/([^/]+)\/)?([^?#]+\.gguf)(?:[?#].*)?$/i

/** Returns the entry that a name or an address means; `undefined` if it means none. */
export function toEntry(text: string): OwnEntry | undefined {
  const [, huggingface, revision, path] = HUB_FILE.exec(text.trim()) ?? []
  if (huggingface !== undefined && path !== undefined && REPOSITORY.test(huggingface)) {
    const tag = `@${ownerOf(huggingface)}/${toPlain(path)}` as const
    return { tag, huggingface, file: decodeURIComponent(path), ...(revision && { revision }) }
  }
  const repository = toRepository(text)
  if (repository) return { tag: toTag(repository), huggingface: repository }
  const { protocol, pathname, href } = URL.canParse(text) ? new URL(text) : new URL('about:blank')
  const isGguf = /^https?:$/.test(protocol) && /\.gguf$/i.test(pathname)
  return isGguf ? { tag: `@me/${toPlain(decodeURIComponent(pathname))}`, gguf: href } : undefined
}

const ownerOf = (repository: string): string =>
  repository.slice(0, repository.indexOf('/')).toLowerCase()

/** Returns the name of a GGUF file, without signs that tags do not have. */
function toPlain(path: string): string {
  const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase()
  const stem = name.replace(/(-\d{5}-of-\d{5})?\.gguf$/, '')
  return stem.replaceAll(/[^a-z0-9._-]+/g, '-').replaceAll(/^[._-]+|[._-]+$/g, '') || 'model'
}

/** Resolves with the playground's models, whose files lie beside those of the library. */
async function ownModels(): Promise<CatalogInput['entries']> {
  // The first paint does without it.
  const { entries } = await import('./models/playground.json')
  const base = new URL('inorigin/models/', document.baseURI)
  return entries.map(({ implementations, ...entry }) => ({
    ...entry,
    implementations: implementations.map(({ resources, ...implementation }) => ({
      ...implementation,
      resources: resources.map((file) => ({ ...file, url: new URL(file.url, base).href })),
    })),
  })) as CatalogInput['entries']
}

function write(entries: readonly OwnEntry[]): void {
  if (entries.length > 0) localStorage.setItem(KEY, JSON.stringify(entries))
  else localStorage.removeItem(KEY)
}
