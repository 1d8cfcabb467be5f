/** Rewrites regular expressions without the flag `u` as those with it, which is what grammars read. */

/** Escapes that mean something, with or without the flag. */
const KNOWN_ESCAPE = /[\w^$\\.*+?()[\]{}|/]/

const QUANTIFIER = /^\{\d+(?:,\d*)?\}/

/** Returns the source of the same expression with the flag `u`. */
export function toUnicodeSource(source: string): string {
  let written = ''
  let isInSet = false
  for (let at = 0; at < source.length; at += 1) {
    const character = source[at] ?? ''
    if (character === '\\') {
      at += 1
      written += rewriteEscape(source[at] ?? '', isInSet)
    } else if (isInSet) {
      isInSet = character !== ']'
      written += character
    } else if (character === '{') {
      const [quantifier] = QUANTIFIER.exec(source.slice(at)) ?? []
      written += quantifier ?? '\\{'
      at += (quantifier?.length ?? 1) - 1
    } else {
      isInSet = character === '['
      written += character === ']' || character === '}' ? `\\${character}` : character
    }
  }
  return written
}

/** Other characters stand for themselves after a backslash, and may have none with the flag. */
function rewriteEscape(character: string, isInSet: boolean): string {
  const isKnown = KNOWN_ESCAPE.test(character) || (isInSet && character === '-')
  return isKnown ? `\\${character}` : character
}
