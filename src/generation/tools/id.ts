const LETTERS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Returns a new unique id: `call_` and 24 letters and digits. */
export function createCallId(): string {
  let id = 'call_'
  // Bytes from `most` on are skipped, so that all 62 letters and digits are equally likely.
  const most = 256 - (256 % LETTERS.length)
  while (id.length < 29) {
    for (const byte of crypto.getRandomValues(new Uint8Array(32))) {
      if (byte < most && id.length < 29) id += LETTERS.charAt(byte % LETTERS.length)
    }
  }
  return id
}
