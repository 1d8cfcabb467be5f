/** A later version of the built package, which speaks another protocol. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import type { FileList } from '../../src/types/index.ts'
import type { Site } from './site.ts'

const FOLDER = 'dist-demo'

/** Places in the built scripts where the protocol version stands. Each is found at least once. */
const PLACES: readonly RegExp[] = [
  /protocol:\s?()1\b/g,
  /protocol\s?[!=]==\s?()1\b/g,
  /`inorigin:()1:\$\{\w+\}:(?:host|responses)`/g,
  /protocol:\s?(\w+)\b[^]{0,120}?if \(\1 !== 1\b/g,
]

/** The list of the library's files, by whose digests the service worker tells versions apart. */
const LIST = 'inorigin/files.json'

/**
 * Serves the scripts of the later version from now on. Its chunks have other names, as those of a build
 * with other contents. Throws if the built scripts look otherwise.
 */
export function deployNext(site: Site): void {
  const found = new Set<RegExp>()
  const list = JSON.parse(readFileSync(`${FOLDER}/${LIST}`, 'utf8')) as FileList
  const chunks = list.files.map(({ name }) => name).filter((name) => name.startsWith('chunks/'))
  const toNext = (script: string) => {
    const patched = PLACES.reduce(
      (text, place) =>
        text.replace(place, (match) => {
          found.add(place)
          return match.replace(/1(?=\D*$|:\$)/, '2')
        }),
      script,
    )
    return chunks.reduce((text, name) => text.replaceAll(basename(name), nextName(name)), patched)
  }
  site.pages['/sw.js'] = toNext(readFileSync(`${FOLDER}/sw.js`, 'utf8'))
  const files = list.files.map((file) => {
    if (!file.name.endsWith('.js')) return file
    const name = chunks.includes(file.name) ? `chunks/${nextName(file.name)}` : file.name
    const script = toNext(readFileSync(`${FOLDER}/inorigin/${file.name}`, 'utf8'))
    site.pages[`/inorigin/${name}`] = script
    return { ...file, name, sha256: createHash('sha256').update(script).digest('hex') }
  })
  site.pages[`/${LIST}`] = JSON.stringify({ ...list, files })
  if (found.size < PLACES.length)
    throw new Error('The built scripts name their protocol otherwise.')
}

const nextName = (chunk: string): string => `next-${basename(chunk)}`
