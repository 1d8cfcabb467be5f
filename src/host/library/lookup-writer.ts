/** Stores the files that a look-up reads, like a download. */
import type { FileSink } from '../../catalog/mlc/file-sink.ts'
import { reserveSpace, withEviction, type EvictionOptions } from '../../store/eviction.ts'
import { importFile } from '../../store/import-file.ts'
import type { Database } from '../../store/database.ts'
import { createProgressMeter, startProgressReports } from '../../store/transfer-rate.ts'
import { acquireUseLocks } from '../../store/use-locks.ts'
import type { LoadProgress, Tag } from '../../types/index.ts'

export interface LookUpWriterOptions extends EvictionOptions {
  tag: Tag
  /** Called before the first write, when enough space is reserved. */
  onWrite: () => void
  onProgress: (progress: LoadProgress) => void
}

/**
 * Runs the work with a keeper that stores the files that it reads. None of them is evicted before
 * the work ends. Rejects as the work does, and with `unavailable` if there is too little space.
 */
export async function withLookUpWriter<T>(
  database: Database,
  { tag, onWrite, onProgress, ...room }: LookUpWriterOptions,
  work: (keeper: FileSink) => Promise<T>,
): Promise<T> {
  const { signal } = room
  const cleanups: Array<() => void> = []
  let meter = createProgressMeter(tag, 'download', 0)
  let bytesToStore = 0
  const keeper: FileSink = {
    async reserve(bytes) {
      bytesToStore = bytes
      meter = createProgressMeter(tag, 'download', bytes)
      cleanups.push(
        await reserveSpace(database, new Map([[`look-up of ${tag}`, () => bytesToStore]]), room),
      )
      onWrite()
      cleanups.push(startProgressReports(meter.progress, onProgress))
    },
    onBytes: (bytes) => meter.add(bytes),
    async store(resource, content) {
      cleanups.push(await acquireUseLocks(database, [resource.sha256], signal))
      const onBytes = (bytes: number) => {
        bytesToStore = Math.max(0, bytesToStore - bytes)
      }
      await withEviction(database, room, () =>
        importFile(database, resource, content, { signal, tag, onBytes }),
      )
    },
  }
  try {
    return await work(keeper)
  } finally {
    for (const cleanup of cleanups) cleanup()
  }
}
