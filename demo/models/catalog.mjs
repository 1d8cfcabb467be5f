/**
 * Writes catalog.json, the catalog of the package, and playground.json, the playground's own.
 * catalog.json lists the embedded entries, with the length and hash of every file, and with
 * the README of the folder as the card. The entries of hub.json follow; their descriptions, licenses
 * and languages repeat what their makers say. `npm run catalog:refresh` pins the entries of hub.json
 * to the commits, files, lengths and hashes of the hub, and prints what it could not look up.
 * An entry without implementations is not pinned yet. playground.json lists what only the
 * playground brings.
 * `node catalog.mjs --check` writes nothing and fails if a file is out of date.
 */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { entries, playgroundEntries } from './entries.mjs'

const at = (path) => new URL(path, import.meta.url)

/** Length in bytes of the parts of split files, and of the chunks with a hash of their own. */
const CHUNK_BYTES = 16 * 2 ** 20

const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex')

function measured(folder, { type, name }) {
  const url = `${folder}/${name}`
  const isSplit = existsSync(at(`${url}.0`))
  const parts = isSplit ? readParts(url) : [readFileSync(at(url))]
  const bytes = Buffer.concat(parts)
  return {
    type,
    url,
    name,
    bytes: bytes.length,
    sha256: sha256(bytes),
    ...(isSplit && { chunks: parts.map(sha256), partBytes: CHUNK_BYTES }),
  }
}

/** Returns the parts of a file. */
function readParts(url) {
  const parts = []
  while (existsSync(at(`${url}.${parts.length}`)))
    parts.push(readFileSync(at(`${url}.${parts.length}`)))
  return parts
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

const listed = (folders) =>
  Object.entries(folders).map(([folder, entry]) => complete(folder, entry))

const hub = JSON.parse(readFileSync(at('hub.json'), 'utf8')).entries
const catalogs = {
  'catalog.json': [...listed(entries), ...hub],
  'playground.json': listed(playgroundEntries),
}
for (const [name, written] of Object.entries(catalogs)) {
  const text = `${JSON.stringify({ version: 1, entries: written }, null, 2)}\n`
  const target = at(name)
  if (!process.argv.includes('--check')) {
    writeFileSync(target, text)
  } else if (readFileSync(target, 'utf8') !== text) {
    const remedy = 'Run: node demo/models/catalog.mjs'
    console.error(`${name} does not describe the files beside it. ${remedy}`)
    process.exit(1)
  }
}
