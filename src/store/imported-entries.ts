/** Stores the catalog entries of imported models, which no catalog lists. */
import { InoriginError } from '../error.ts'
import type { EntryRecord } from './db.ts'
import { runWrite, type Database } from './database.ts'
import { keepForTags, MODEL_STORES } from './resources.ts'

const IMPORT_SCHEME = 'import:'

/** Resolves with all entries of imported tags. */
export const listImportedEntries = (database: Database): Promise<EntryRecord[]> =>
  database.use((connection) => connection.getAll('entries'))

/**
 * Stores and pins the entry of a tag, in place of an earlier one. Removes the tag's resources that
 * are not in `hashes`, unless another tag uses them. Rejects with `unavailable` and changes nothing
 * if a resource of `hashes` is not stored any more.
 */
export function putImportedEntry(
  database: Database,
  record: EntryRecord,
  hashes: ReadonlySet<string>,
): Promise<void> {
  const { tag } = record
  return runWrite(database, MODEL_STORES, async (transaction) => {
    const stored = await transaction.objectStore('resources').getAll()
    const present = stored.filter(({ sha256, verified }) => verified && hashes.has(sha256))
    if (present.length < hashes.size) throw filesRemovedError(tag)
    for (const other of stored) {
      if (hashes.has(other.sha256) || !other.tags.includes(tag)) continue
      const tags = other.tags.filter((one) => one !== tag)
      await keepForTags(transaction, other, tags)
    }
    await transaction.objectStore('entries').put(record)
    await transaction.objectStore('pins').put({ tag, since: new Date().toISOString() })
  })
}

function filesRemovedError(tag: string): InoriginError {
  const what = `Files of ${tag} were removed while it was being imported. Import it again.`
  return new InoriginError('unavailable', what, { code: 'import_lost' })
}

/** Returns `true` if the file was imported, so that only the user has it. */
export const isImported = ({ url }: { url: string }): boolean => url.startsWith(IMPORT_SCHEME)

/** Returns the placeholder for the URL of an imported file. */
export const toImportUrl = (name: string): string =>
  new URL(`${IMPORT_SCHEME}${name.split('/').map(encodeURIComponent).join('/')}`).href
