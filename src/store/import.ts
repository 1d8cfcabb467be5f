/** Imports files that the user chose into the store. */
import type { ImportProgress, Tag } from '../types/index.ts'
import type { WantedResource } from './db.ts'
import { takeRoom, withRoom, type RoomOptions } from './evict.ts'
import { changed, hashFile, takeIn } from './intake.ts'
import type { Database } from './open.ts'
import { inParallel } from './parallel.ts'
import { reportRegularly, startMeter } from './rate.ts'
import { bytesHere, readResource, resourceRecord, touchResources } from './resources.ts'
import { holdInUse } from './use.ts'

export interface ImportOptions extends RoomOptions {
  tag: Tag
  onProgress: (progress: ImportProgress) => void
  /** Called when something must be written and there is room for it. */
  onWrite?: () => void
}

/** File and the resource that it is. */
export interface Match {
  path: string
  file: Blob
  resource: WantedResource
}

/** Number of files that are written at the same time. All come from one disk. */
const PARALLEL = 2

/** Resolves with the sha256 of each file, in the same order. */
export function hashFiles(files: readonly Blob[], options: ImportOptions): Promise<string[]> {
  const { signal } = options
  return checkFiles(files, options, async (onBytes) => {
    const hashes: string[] = []
    for (const file of files) hashes.push(await hashFile(file, { signal, onBytes }))
    return hashes
  })
}

/** Runs `read` and reports the bytes that it passes to `onBytes` as the phase `check`. */
export async function checkFiles<T>(
  files: readonly Blob[],
  { tag, onProgress }: Pick<ImportOptions, 'tag' | 'onProgress'>,
  read: (onBytes: (bytes: number) => void) => Promise<T>,
): Promise<T> {
  const meter = startMeter(
    tag,
    'check',
    files.reduce((sum, file) => sum + file.size, 0),
  )
  const stop = reportRegularly(meter.progress, onProgress)
  const found = await read(meter.add).finally(stop)
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
  matches: readonly Match[],
  options: ImportOptions,
): Promise<number> {
  const { tag, signal, onProgress, onWrite = () => undefined } = options
  const unique = new Map(matches.map((match) => [match.resource.sha256, match]))
  const release = await holdInUse(database, unique.keys(), signal)
  let free = () => {}
  try {
    const missing: Match[] = []
    const toCome = new Map<string, number>()
    for (const match of unique.values()) {
      const { sha256, bytes } = match.resource
      if (await readResource(database, sha256)) continue
      const record = await resourceRecord(database, sha256)
      missing.push(match)
      toCome.set(sha256, Math.max(0, bytes - (record ? bytesHere(record) : 0)))
    }
    if (missing.length > 0) {
      const left = Array.from(
        toCome.keys(),
        (sha256) => [sha256, () => toCome.get(sha256) ?? 0] as const,
      )
      free = await takeRoom(database, new Map(left), options)
      onWrite()
    }
    const total = [...toCome.values()].reduce((sum, bytes) => sum + bytes, 0)
    const meter = startMeter(tag, 'store', total)
    const stop = reportRegularly(meter.progress, onProgress)
    await inParallel(missing, PARALLEL, signal, async ({ path, file, resource }, shared) => {
      const { sha256 } = resource
      const onBytes = (bytes: number) => {
        meter.add(bytes)
        toCome.set(sha256, Math.max(0, (toCome.get(sha256) ?? 0) - bytes))
      }
      const isSame = await withRoom(database, { ...options, signal: shared }, () =>
        takeIn(database, resource, file, { signal: shared, tag, onBytes }),
      )
      if (!isSame) throw changed(path)
    }).finally(stop)
    await touchResources(database, unique.keys(), tag)
    onProgress(meter.progress())
    return total
  } finally {
    free()
    release()
  }
}
