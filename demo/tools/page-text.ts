/** Number of characters that a model gets of a file. */
const MAX_CHARACTERS = 8_000
const TIMEOUT_MS = 10_000

/**
 * Resolves with the text of a file of this site, shortened to what a small model can read.
 *
 * @throws Error if the path leads to another site, or to something that is not text.
 */
export async function readPageText(path: string, signal: AbortSignal): Promise<string> {
  const url = URL.canParse(path, document.baseURI) ? new URL(path, document.baseURI) : undefined
  if (url?.origin !== location.origin) {
    throw new Error(`"${path}" is not a path of this site. Other sites are never read.`)
  }
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)])
  const response = await fetch(url, { redirect: 'error', credentials: 'omit', signal: deadline })
  if (!response.ok) throw new Error(`${url.pathname} failed with status ${response.status}.`)
  const type = response.headers.get('content-type') ?? ''
  if (!/^text\/|json|xml|javascript/.test(type) || !response.body) {
    throw new Error(`${url.pathname} is not text, but ${type || 'of an unknown type'}.`)
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    text += part.value
    if (text.length < MAX_CHARACTERS) continue
    await reader.cancel()
    return `${text.slice(0, MAX_CHARACTERS)}\n[The rest of the file is left out.]`
  }
  return text
}
