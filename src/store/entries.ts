/** What files of the user's are, of which no catalog tells. */
import { InoriginError } from '../error.ts'
import type { EntryRecord } from './db.ts'
import { committed, type Database } from './open.ts'
import { chunksOf } from './resources.ts'

const IMPORTED = 'import:'

/** All of them. */
export function entryRecords(database: Database): Promise<EntryRecord[]> {
  return database.use((connection) => connection.getAll('entries'))
}

/**
 * Keeps what a tag is, in place of what it was; of the resources that were stored for it, those that are
 * not among these go, unless another tag uses them. It is pinned: nothing brings it back but its user.
 * Rejects with `unavailable`, and leaves all as it was, where one of these is not here any more.
 */
export function putEntry(
  database: Database,
  record: EntryRecord,
  hashes: ReadonlySet<string>,
): Promise<void> {
  const { tag } = record
  return database.use((connection) => {
    const stores = ['entries', 'resources', 'chunks', 'pins'] as const
    const transaction = connection.transaction(stores, 'readwrite')
    return committed(transaction, async () => {
      const resources = transaction.objectStore('resources')
      const stored = await resources.getAll()
      const here = stored.filter(({ sha256, verified }) => verified && hashes.has(sha256))
      if (here.length < hashes.size) throw removed(tag)
      const others = stored.filter(({ sha256 }) => !hashes.has(sha256))
      for (const other of others.filter(({ tags }) => tags.includes(tag))) {
        const tags = other.tags.filter((one) => one !== tag)
        if (tags.length > 0) {
          await resources.put({ ...other, tags })
          continue
        }
        await resources.delete(other.sha256)
        await transaction.objectStore('chunks').delete(chunksOf(other.sha256))
      }
      await transaction.objectStore('entries').put(record)
      await transaction.objectStore('pins').put({ tag, since: new Date().toISOString() })
    })
  })
}

function removed(tag: string): InoriginError {
  const what = `Files of ${tag} were removed while it was being imported. Import it again.`
  return new InoriginError('unavailable', what, { code: 'import_lost' })
}

/** Whether nobody but the user has that file: it was imported. */
export function isImported({ url }: { url: string }): boolean {
  return url.startsWith(IMPORTED)
}

/** What stands in the place of the address of such a file. */
export function importedUrl(name: string): string {
  return new URL(`${IMPORTED}${name.split('/').map(encodeURIComponent).join('/')}`).href
}
