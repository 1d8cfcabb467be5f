/** What a look-up reads, stored as a download would be. */
import type { Keeper } from '../catalog/mlc/keeper.ts'
import { takeRoom, withRoom, type RoomOptions } from '../store/evict.ts'
import { takeIn } from '../store/intake.ts'
import type { Database } from '../store/open.ts'
import { reportRegularly, secondsFor, startRate } from '../store/rate.ts'
import { holdInUse } from '../store/use.ts'
import type { LoadProgress, Tag } from '../types/index.ts'

export interface KeepingOptions extends RoomOptions {
  tag: Tag
  /** Something is written, and there is room for it. */
  onWrite: () => void
  onProgress: (progress: LoadProgress) => void
}

/**
 * Does the work with somewhere to put what it reads: none of that is evicted before it ends. Rejects as the
 * work does, and with `unavailable` where there is no room, before the first long file.
 */
export async function withKeeper<T>(
  database: Database,
  { tag, onWrite, onProgress, ...room }: KeepingOptions,
  work: (keeper: Keeper) => Promise<T>,
): Promise<T> {
  const { signal } = room
  const endings: Array<() => void> = []
  const rate = startRate()
  let totalBytes = 0
  let loadedBytes = 0
  let toStore = 0
  const progress = (): LoadProgress => {
    const bytesPerSecond = rate.perSecond()
    const remainingSeconds = secondsFor(totalBytes - loadedBytes, bytesPerSecond)
    return { tag, phase: 'download', loadedBytes, totalBytes, bytesPerSecond, remainingSeconds }
  }
  const keeper: Keeper = {
    async expect(bytes) {
      totalBytes = toStore = bytes
      endings.push(await takeRoom(database, new Map([[`look-up of ${tag}`, () => toStore]]), room))
      onWrite()
      endings.push(reportRegularly(progress, onProgress))
    },
    onBytes(bytes) {
      loadedBytes = Math.min(totalBytes, loadedBytes + bytes)
      rate.add(bytes)
    },
    async keep(resource, content) {
      endings.push(await holdInUse(database, [resource.sha256], signal))
      const onBytes = (bytes: number) => {
        toStore = Math.max(0, toStore - bytes)
      }
      await withRoom(database, room, () =>
        takeIn(database, resource, content, { signal, tag, onBytes }),
      )
    },
  }
  try {
    return await work(keeper)
  } finally {
    for (const end of endings) end()
  }
}
