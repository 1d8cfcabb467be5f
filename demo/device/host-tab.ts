/** Finds whether this tab hosts the models, by the locks that the browser lists. */

/** Name of the lock that the hosting tab holds, for any scope. */
const HOST_LOCK = /^inorigin:\d+:.*:host$/

/** Resolves with words for the hosting tab. */
export async function findHost(): Promise<string> {
  const { locks } = navigator
  if (!locks) return 'not known'
  const name = `playground:${crypto.randomUUID()}`
  // A lock of this tab tells its own client id, which the browser gives nowhere else.
  const { held = [] } = await locks.request(name, () => locks.query())
  const own = held.find((lock) => lock.name === name)?.clientId
  const hosts = held.filter((lock) => HOST_LOCK.test(lock.name ?? ''))
  if (hosts.length === 0) return 'none at the moment'
  return hosts.some(({ clientId }) => clientId === own) ? 'this tab' : 'another tab'
}
