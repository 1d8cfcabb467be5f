/** Storage the browser grants: how much is left, and what to say when it is not enough. */
import { InoriginError } from '../error.ts'

/** What this origin stores and may store, in bytes; `null` where the browser does not tell. */
export interface Room {
  usage: number | null
  quota: number | null
}

/** The browser's own estimate for everything this origin stores. */
export async function estimateRoom(): Promise<Room> {
  const { usage, quota } = (await navigator.storage?.estimate?.()) ?? {}
  return { usage: usage ?? null, quota: quota ?? null }
}

/**
 * Resolves when that many more bytes fit; rejects with `unavailable` saying how many are missing.
 */
export async function requireRoom(bytes: number): Promise<void> {
  if (bytes === 0) return
  const { usage, quota } = await estimateRoom()
  if (usage === null || quota === null) return
  const free = Math.max(0, quota - usage)
  if (bytes <= free) return
  throw new InoriginError(
    'unavailable',
    `Not enough storage: ${megabytes(bytes)} are to be downloaded and the browser grants this ` +
      `site ${megabytes(free)} more; ${megabytes(bytes - free)} are missing. ` +
      'Remove models that are not needed, or free space on the disk.',
    {
      code: 'storage_full',
      details: { neededBytes: bytes, freeBytes: free, missingBytes: bytes - free },
    },
  )
}

let asked: Promise<boolean> | null = null

/**
 * Whether the browser keeps this origin's storage until the user clears it; asks for that the first
 * time. For pages: browsers take the question from no worker.
 */
export function requestPersistence(): Promise<boolean> {
  asked ??= askOnce().catch(() => false)
  return asked
}

async function askOnce(): Promise<boolean> {
  const storage: Partial<StorageManager> | undefined = navigator.storage
  if (await storage?.persisted?.()) return true
  return (await storage?.persist?.()) ?? false
}

/** Whether that is the browser saying that nothing more fits. */
export function isStorageFull(thrown: unknown): boolean {
  return thrown instanceof Error && thrown.name === 'QuotaExceededError'
}

/** The same as an {@link InoriginError} that says what to do. */
export function storageFull(cause: unknown): InoriginError {
  return new InoriginError(
    'unavailable',
    'The storage the browser grants this site is full. What was downloaded so far is kept; ' +
      'remove models that are not needed, or free space on the disk, and try again.',
    { code: 'storage_full', cause },
  )
}

function megabytes(bytes: number): string {
  const value = bytes / 1e6
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} MB`
}
