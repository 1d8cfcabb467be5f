/** Stores the files that a look-up reads, like a download. */
import type { FileSink } from '../../catalog/mlc/file-sink.ts'
import { reserveSpace, withEviction, type EvictionOptions } from '../../store/eviction.ts'
import { importFile } from '../../store/import-file.ts'
import type { Database } from '../../store/database.ts'
import { startProgressReports, estimateSeconds, createRate } from '../../store/transfer-rate.ts'
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
  const rate = createRate()
  let totalBytes = 0
  let loadedBytes = 0
  let bytesToStore = 0
  const progress = (): LoadProgress => {
    const bytesPerSecond = rate.perSecond()
    const remainingSeconds = estimateSeconds(totalBytes - loadedBytes, bytesPerSecond)
    return { tag, phase: 'download', loadedBytes, totalBytes, bytesPerSecond, remainingSeconds }
  }
  const keeper: FileSink = {
    async reserve(bytes) {
      totalBytes = bytesToStore = bytes
      cleanups.push(
        await reserveSpace(database, new Map([[`look-up of ${tag}`, () => bytesToStore]]), room),
      )
      onWrite()
      cleanups.push(startProgressReports(progress, onProgress))
    },
    onBytes(bytes) {
      loadedBytes = Math.min(totalBytes, loadedBytes + bytes)
      rate.add(bytes)
    },
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
