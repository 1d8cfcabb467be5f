/** Reads the storage quota of this origin, and creates the error for a full disk. */
import { InoriginError } from '../error.ts'

/** Storage usage and quota of this origin in bytes; `null` where the browser does not report it. */
export interface StorageQuota {
  usage: number | null
  quota: number | null
}

/** Resolves with the browser's estimate for everything that this origin stores. */
export async function estimateQuota(): Promise<StorageQuota> {
  const { usage, quota } = (await navigator.storage?.estimate?.()) ?? {}
  return { usage: usage ?? null, quota: quota ?? null }
}

/** Returns `true` if the browser reported that its quota is exceeded. */
export function isQuotaExceeded(thrown: unknown): boolean {
  return thrown instanceof Error && thrown.name === 'QuotaExceededError'
}

/** Returns `true` for a {@link storageFullError} error and for the error of a failed eviction. */
export function isStorageFullError(thrown: unknown): boolean {
  return thrown instanceof InoriginError && thrown.code === 'storage_full'
}

/** Ignores a full storage, for writes that are optional; rethrows every other error. */
export function ignoreStorageFull(thrown: unknown): void {
  if (!isStorageFullError(thrown)) throw thrown
}

/** Returns an {@link InoriginError} for a full storage that says what to do. */
export function storageFullError(cause: unknown): InoriginError {
  return new InoriginError(
    'unavailable',
    'The storage that the browser grants this site is full. Downloaded data is kept. Remove ' +
      'models that you do not need, or free space on the disk, and try again.',
    { code: 'storage_full', cause },
  )
}
