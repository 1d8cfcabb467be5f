/** Imports files that the user chose into the store. */
import type { ImportProgress, Tag } from '../types/index.ts'
import type { WantedResource } from './db.ts'
import { reserveSpace, withEviction, type EvictionOptions } from './eviction.ts'
import { fileChangedError, digestFile, importFile } from './import-file.ts'
import type { Database } from './database.ts'
import { forEachParallel } from './parallel.ts'
import { startProgressReports, createProgressMeter } from './transfer-rate.ts'
import { countStoredBytes, readResource, findResourceRecord, touchResources } from './resources.ts'
import { acquireUseLocks } from './use-locks.ts'

export interface ImportOptions extends EvictionOptions {
  tag: Tag
  onProgress: (progress: ImportProgress) => void
  /** Called when something must be written and there is space for it. */
  onWrite?: () => void
}

/** File and the resource that it is. */
export interface FileMatch {
  path: string
  file: Blob
  resource: WantedResource
}

/** Number of files that are written at the same time. All come from one disk. */
const MAX_PARALLEL_WRITES = 2

/** Resolves with the sha256 of each file, in the same order. */
export function digestFiles(files: readonly Blob[], options: ImportOptions): Promise<string[]> {
  const { signal } = options
  return withCheckProgress(files, options, async (onBytes) => {
    const hashes: string[] = []
    for (const file of files) hashes.push(await digestFile(file, { signal, onBytes }))
    return hashes
  })
}

/** Runs `read` and reports the bytes that it passes to `onBytes` as the phase `check`. */
export async function withCheckProgress<T>(
  files: readonly Blob[],
  { tag, onProgress }: Pick<ImportOptions, 'tag' | 'onProgress'>,
  read: (onBytes: (bytes: number) => void) => Promise<T>,
): Promise<T> {
  const meter = createProgressMeter(
    tag,
    'check',
    files.reduce((sum, file) => sum + file.size, 0),
  )
  const stopReports = startProgressReports(meter.progress, onProgress)
  const found = await read(meter.add).finally(stopReports)
  onProgress(meter.progress())
  return found
}

/**
 * Stores the files that are not stored yet. Resolves with the number of bytes written. Rejects with
 * `unavailable` before the first byte if they do not fit, with `invalid_request` if a file changed
 * since it was matched, and with `aborted`. Complete chunks stay stored.
 */
export async function importFiles(
  database: Database,
  matches: readonly FileMatch[],
  options: ImportOptions,
): Promise<number> {
  const { tag, signal, onProgress, onWrite = () => undefined } = options
  const unique = new Map(matches.map((match) => [match.resource.sha256, match]))
  const release = await acquireUseLocks(database, unique.keys(), signal)
  let releaseSpace = () => {}
  try {
    const missing: FileMatch[] = []
    const missingBytes = new Map<string, number>()
    for (const match of unique.values()) {
      const { sha256, bytes } = match.resource
      if (await readResource(database, sha256)) continue
      const record = await findResourceRecord(database, sha256)
      missing.push(match)
      missingBytes.set(sha256, Math.max(0, bytes - (record ? countStoredBytes(record) : 0)))
    }
    if (missing.length > 0) {
      const remaining = Array.from(
        missingBytes.keys(),
        (sha256) => [sha256, () => missingBytes.get(sha256) ?? 0] as const,
      )
      releaseSpace = await reserveSpace(database, new Map(remaining), options)
      onWrite()
    }
    const total = [...missingBytes.values()].reduce((sum, bytes) => sum + bytes, 0)
    const meter = createProgressMeter(tag, 'store', total)
    const stopReports = startProgressReports(meter.progress, onProgress)
    await forEachParallel(
      missing,
      MAX_PARALLEL_WRITES,
      signal,
      async ({ path, file, resource }, shared) => {
        const { sha256 } = resource
        const onBytes = (bytes: number) => {
          meter.add(bytes)
          missingBytes.set(sha256, Math.max(0, (missingBytes.get(sha256) ?? 0) - bytes))
        }
        const isSame = await withEviction(database, { ...options, signal: shared }, () =>
          importFile(database, resource, file, { signal: shared, tag, onBytes }),
        )
        if (!isSame) throw fileChangedError(path)
      },
    ).finally(stopReports)
    await touchResources(database, unique.keys(), tag)
    onProgress(meter.progress())
    return total
  } finally {
    releaseSpace()
    release()
  }
}
