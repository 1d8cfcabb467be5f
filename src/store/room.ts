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

let asked: Promise<boolean> | null = null

/** {@link askPersistence}, the first time. */
export function requestPersistence(): Promise<boolean> {
  asked ??= askPersistence()
  return asked
}

/**
 * Asks the browser to keep this origin's storage until the user clears it; whether it does. For pages:
 * browsers take the question from no worker.
 */
export async function askPersistence(): Promise<boolean> {
  const storage: Partial<StorageManager> | undefined = navigator.storage
  if (await isPersisted()) return true
  return (await storage?.persist?.().catch(() => false)) ?? false
}

/** Whether the browser keeps this origin's storage until the user clears it. */
export async function isPersisted(): Promise<boolean> {
  const storage: Partial<StorageManager> | undefined = navigator.storage
  return (await storage?.persisted?.().catch(() => false)) ?? false
}

/** Whether that is the browser saying that nothing more fits. */
export function isStorageFull(thrown: unknown): boolean {
  return thrown instanceof Error && thrown.name === 'QuotaExceededError'
}

/** Whether that is {@link storageFull}, or what is said where nothing can make room. */
export function isFull(thrown: unknown): boolean {
  return thrown instanceof InoriginError && thrown.code === 'storage_full'
}

/** Passes over that error alone: what may as well stay unsaid, such as when something was last used. */
export function unlessFull(thrown: unknown): void {
  if (!isFull(thrown)) throw thrown
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
