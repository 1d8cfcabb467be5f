/** Maximum length in UTF-16 units of a text from a request that an error message shows. */
const MAX_SHOWN_CHARACTERS = 100

/** Shortens a text from a request for an error message, because a client may send any length. */
export function shorten(text: string, maxCharacters = MAX_SHOWN_CHARACTERS): string {
  return text.length > maxCharacters ? `${text.slice(0, maxCharacters)}...` : text
}
