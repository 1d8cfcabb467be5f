/** Stores the files that a look-up reads, like a download. */
import type { Keeper } from '../catalog/mlc/keeper.ts'
import { takeRoom, withRoom, type RoomOptions } from '../store/evict.ts'
import { takeIn } from '../store/intake.ts'
import type { Database } from '../store/open.ts'
import { reportRegularly, secondsFor, startRate } from '../store/rate.ts'
import { holdInUse } from '../store/use.ts'
import type { LoadProgress, Tag } from '../types/index.ts'

export interface LookUpWriterOptions extends RoomOptions {
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
  work: (keeper: Keeper) => Promise<T>,
): Promise<T> {
  const { signal } = room
  const cleanups: Array<() => void> = []
  const rate = startRate()
  let totalBytes = 0
  let loadedBytes = 0
  let bytesToStore = 0
  const progress = (): LoadProgress => {
    const bytesPerSecond = rate.perSecond()
    const remainingSeconds = secondsFor(totalBytes - loadedBytes, bytesPerSecond)
    return { tag, phase: 'download', loadedBytes, totalBytes, bytesPerSecond, remainingSeconds }
  }
  const keeper: Keeper = {
    async expect(bytes) {
      totalBytes = bytesToStore = bytes
      cleanups.push(
        await takeRoom(database, new Map([[`look-up of ${tag}`, () => bytesToStore]]), room),
      )
      onWrite()
      cleanups.push(reportRegularly(progress, onProgress))
    },
    onBytes(bytes) {
      loadedBytes = Math.min(totalBytes, loadedBytes + bytes)
      rate.add(bytes)
    },
    async keep(resource, content) {
      cleanups.push(await holdInUse(database, [resource.sha256], signal))
      const onBytes = (bytes: number) => {
        bytesToStore = Math.max(0, bytesToStore - bytes)
      }
      await withRoom(database, room, () =>
        takeIn(database, resource, content, { signal, tag, onBytes }),
      )
    },
  }
  try {
    return await work(keeper)
  } finally {
    for (const cleanup of cleanups) cleanup()
  }
}
