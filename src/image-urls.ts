/** The option `imageUrls` of `serve()`: the servers from which images are fetched. */
import { InoriginError } from './error.ts'

/** Parses the option to absolute URLs. Throws `invalid_request` that names the invalid URL. */
export function parseImageUrls(given: readonly (string | URL)[] = []): string[] {
  if (!Array.isArray(given)) throw invalidImageUrls('imageUrls', 'must be an array of URLs')
  return given.map((url: string | URL, at) => {
    const href = URL.canParse(String(url), document.baseURI)
      ? new URL(String(url), document.baseURI).href
      : ''
    if (/^https?:/.test(href)) return href
    throw invalidImageUrls(`imageUrls[${at}]`, 'must be an http or https URL')
  })
}

const invalidImageUrls = (param: string, what: string): InoriginError =>
  new InoriginError('invalid_request', `\`${param}\` ${what}.`, { param })
