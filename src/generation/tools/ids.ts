/** Ids of calls. */

const LETTERS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** A new id, unlike any other: `call_` and 24 letters and digits. */
export function createCallId(): string {
  let id = 'call_'
  // As many values for each letter, which 256 do not give.
  const most = 256 - (256 % LETTERS.length)
  while (id.length < 29) {
    for (const byte of crypto.getRandomValues(new Uint8Array(32))) {
      if (byte < most && id.length < 29) id += LETTERS.charAt(byte % LETTERS.length)
    }
  }
  return id
}

/** The same nine letters and digits for the same id; one that is so already stays. */
export function nineCharacters(id: string): string {
  if (/^[0-9A-Za-z]{9}$/.test(id)) return id
  let hash = 0xcbf29ce484222325n
  for (const byte of new TextEncoder().encode(id)) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n)
  }
  let short = ''
  while (short.length < 9) {
    short += LETTERS.charAt(Number(hash % 62n))
    hash /= 62n
  }
  return short
}
