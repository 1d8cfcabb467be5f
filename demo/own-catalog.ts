/**
 * The playground's own catalog: the model that comes with it, and entries that the visitor added by a
 * hub's repository or an address. `start()` serves them.
 */
import type { CatalogInput, Tag } from '../src/index.ts'

const KEY = 'playground:own-catalog'

export type OwnEntry =
  | { tag: Tag; huggingface: string; file?: string; revision?: string }
  | { tag: Tag; gguf: string; huggingface?: never }

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
