/** Asks the browser to keep the storage of this origin. */

/**
 * Asks the browser to keep this origin's storage until the user clears it. Resolves with `true` if
 * it does. Works in pages only, since workers cannot ask.
 */
export const askPersistence = async (): Promise<boolean> =>
  (await isPersisted()) || ((await navigator.storage?.persist?.().catch(() => false)) ?? false)

let persistenceRequest: Promise<boolean> | undefined

/** Calls {@link askPersistence} once and returns its promise on every call. */
export const requestPersistence = (): Promise<boolean> => (persistenceRequest ??= askPersistence())

/** Resolves with `true` if the browser keeps this origin's storage until the user clears it. */
export const isPersisted = async (): Promise<boolean> =>
  (await navigator.storage?.persisted?.().catch(() => false)) ?? false
