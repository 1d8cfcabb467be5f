/** Compares upstream URLs. */

/** Returns `true` if `url` is one of the allowed URLs or below one. */
export function isBelow(url: URL, allowed: string): boolean {
  if (!URL.canParse(allowed)) return false
  const { origin, pathname } = new URL(allowed)
  const folder = pathname.replace(/\/*$/, '/')
  return url.origin === origin && `${url.pathname}/`.startsWith(folder)
}
