/** Asks the browser to keep the storage of this origin. */

let persistenceRequest: Promise<boolean> | null = null

/** Calls {@link askPersistence} once and returns its promise on every call. */
export function requestPersistence(): Promise<boolean> {
  persistenceRequest ??= askPersistence()
  return persistenceRequest
}

/**
 * Asks the browser to keep this origin's storage until the user clears it. Resolves with `true` if
 * it does. Works in pages only, since workers cannot ask.
 */
export async function askPersistence(): Promise<boolean> {
  const storage: Partial<StorageManager> | undefined = navigator.storage
  if (await isPersisted()) return true
  return (await storage?.persist?.().catch(() => false)) ?? false
}

/** Resolves with `true` if the browser keeps this origin's storage until the user clears it. */
export async function isPersisted(): Promise<boolean> {
  const storage: Partial<StorageManager> | undefined = navigator.storage
  return (await storage?.persisted?.().catch(() => false)) ?? false
}
