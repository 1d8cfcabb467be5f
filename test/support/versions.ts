/** A later version of the built package, which speaks another protocol. */
import { readdirSync, readFileSync } from 'node:fs'
import type { Site } from './site.ts'

const FOLDER = 'dist-demo'

/** Places in the built scripts where the protocol version stands. Each is found at least once. */
const PLACES: readonly RegExp[] = [
  /protocol:\s?()1\b/g,
  /protocol\s?[!=]==\s?()1\b/g,
  /`inorigin:()1:\$\{\w+\}:host`/g,
  /protocol:\s?(\w+)\b[^]{0,120}?if \(\1 !== 1\b/g,
]

/** Serves the scripts of the later version from now on. Throws if the built scripts look otherwise. */
export function deployNext(site: Site): void {
  const found = new Set<RegExp>()
  const paths = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
  for (const path of paths.filter((one) => one === 'sw.js' || /^inorigin\/.*\.js$/.test(one))) {
    const script = readFileSync(`${FOLDER}/${path}`, 'utf8')
    const next = PLACES.reduce(
      (text, place) =>
        text.replace(place, (match) => {
          found.add(place)
          return match.replace(/1(?=\D*$|:\$)/, '2')
        }),
      script,
    )
    if (next !== script) site.pages[`/${path}`] = next
  }
  if (found.size < PLACES.length)
    throw new Error('The built scripts name their protocol otherwise.')
}
