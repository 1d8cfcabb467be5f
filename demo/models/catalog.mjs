/**
 * Writes catalog.json. It lists the embedded entries, with the length and hash of every file, and with
 * the README of the folder as the card. The entries of hub.json follow; their descriptions, licenses
 * and languages repeat what their makers say. `npm run catalog:refresh` pins the entries of hub.json
 * to the commits, files, lengths and hashes of the hub, and prints what it could not look up.
 * An entry without implementations is not pinned yet.
 * `node catalog.mjs --check` writes nothing and fails if the file is out of date.
 */
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { entries } from './entries.mjs'

const at = (path) => new URL(path, import.meta.url)

function measured(folder, { type, name }) {
  const url = `${folder}/${name}`
  const bytes = readFileSync(at(url))
  return {
    type,
    url,
    name,
    bytes: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
  }
}

function complete(folder, { implementations, ...entry }) {
  return {
    ...entry,
    card: readFileSync(at(`${folder}/README.md`), 'utf8'),
    implementations: implementations.map((implementation) => ({
      ...implementation,
      resources: implementation.resources.map((resource) => measured(folder, resource)),
    })),
  }
}

const catalog = {
  version: 1,
  entries: [
    ...Object.entries(entries).map(([folder, entry]) => complete(folder, entry)),
    ...JSON.parse(readFileSync(at('hub.json'), 'utf8')).entries,
  ],
}
const text = `${JSON.stringify(catalog, null, 2)}\n`
const target = at('catalog.json')

if (!process.argv.includes('--check')) {
  writeFileSync(target, text)
} else if (readFileSync(target, 'utf8') !== text) {
  console.error(
    'catalog.json does not describe the files beside it. Run: node demo/models/catalog.mjs',
  )
  process.exit(1)
}
