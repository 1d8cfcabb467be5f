/** The wait for a web server where something that was kept can answer instead. */

/** Timeout in milliseconds for the web server. */
const SERVER_TIMEOUT_MS = 3_000

/** Resolves like the work, or with `undefined` after a timeout, of which it tells. */
export async function unlessSlow<T>(
  work: Promise<T>,
  onTimeout: () => void = () => {},
): Promise<T | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const timeout = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => {
      onTimeout()
      resolve(undefined)
    }, SERVER_TIMEOUT_MS)
  })
  return Promise.race([work, timeout]).finally(() => clearTimeout(timer))
}
