/** Largest number of characters that a message shows of a name that a client sent. */
const MAX_NAME_CHARACTERS = 100

/** Shortens a name for a message, because a client may send a string of any length. */
export function shorten(name: string, most = MAX_NAME_CHARACTERS): string {
  return name.length > most ? `${name.slice(0, most)}...` : name
}
