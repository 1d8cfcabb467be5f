/** Lets the script of xgrammar, made for browsers, find its place in Node. */
export function placeXgrammar(): void {
  Object.assign(globalThis, { location: { href: import.meta.url } })
}
