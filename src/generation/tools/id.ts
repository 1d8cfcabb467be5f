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
