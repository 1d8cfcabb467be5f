/** Entries that the visitor added by the name of a hub's repository. `start()` serves them. */
import type { CatalogInput, Tag } from '../src/index.ts'

const KEY = 'playground:own-catalog'

/** Name of a repository on the hub: an owner and a name. */
const REPOSITORY = /^[A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*$/

export interface OwnEntry {
  tag: Tag
  huggingface: string
}

/** Returns the entries that the visitor added. */
export function ownEntries(): OwnEntry[] {
  return JSON.parse(localStorage.getItem(KEY) ?? '[]') as OwnEntry[]
}

/** Returns the entries as a catalog for `serve()`; `undefined` if there are none. */
export function ownCatalog(): CatalogInput | undefined {
  const entries = ownEntries()
  return entries.length > 0 ? { version: 1, entries } : undefined
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

function write(entries: readonly OwnEntry[]): void {
  if (entries.length > 0) localStorage.setItem(KEY, JSON.stringify(entries))
  else localStorage.removeItem(KEY)
}
