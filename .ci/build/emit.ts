/** Vite plugins that put into the package what is not code. */
import { createHash } from 'node:crypto'
import { cpSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join, sep } from 'node:path'
import type { Plugin } from 'vite'
import { toMlcCatalog } from '../../src/catalog/mlc/expand-entry.ts'
import { MLC_LIST } from '../../src/catalog/mlc/list.ts'
import type { CatalogDocument } from '../../src/catalog/schema.ts'
import { catalogJsonSchema } from './schema.ts'

/** Bytes that the package may carry for one model. */
const MODEL_LIMIT = 8_000_000

/** `catalog.schema.json`: the catalog's schema for editors and other languages. */
export function emitCatalogSchema(): Plugin {
  return {
    name: 'inorigin:catalog-schema',
    async generateBundle() {
      const schema = await catalogJsonSchema()
      this.emitFile({
        type: 'asset',
        fileName: 'catalog.schema.json',
        source: `${JSON.stringify(schema, null, 2)}\n`,
      })
    },
  }
}

/** `catalogs/mlc.json`: WebLLM's own list of models as a catalog; as a module, too, for all that import. */
export function emitMlcCatalog(): Plugin {
  return {
    name: 'inorigin:mlc-catalog',
    generateBundle() {
      const { version, entries } = toMlcCatalog(MLC_LIST)
      const lines = entries.map((entry) => `    ${JSON.stringify(entry)}`)
      const source = `{\n  "version": ${version},\n  "entries": [\n${lines.join(',\n')}\n  ]\n}\n`
      this.emitFile({ type: 'asset', fileName: 'catalogs/mlc.json', source })
      this.emitFile({
        type: 'asset',
        fileName: 'catalogs/mlc.js',
        source: `export default ${source}`,
      })
    },
  }
}

/**
 * `llguidance.wasm`, which compiles constraints. Its licenses go to `licenses/`, where those of all bundles are
 * gathered.
 */
export function emitConstraintEngine(folder: string): Plugin {
  const read = (name: string): Buffer => readFileSync(join(folder, name))
  return {
    name: 'inorigin:constraint-engine',
    generateBundle() {
      const { file, version, sha256 } = JSON.parse(String(read('llguidance.json')))
      const source = read(file)
      if (createHash('sha256').update(source).digest('hex') !== sha256) {
        this.error(`${file} is not what llguidance.json describes. Run tools/llguidance/build.sh.`)
      }
      this.emitFile({ type: 'asset', fileName: file, source })
      const text = String(read('llguidance.licenses.md'))
      this.emitFile({
        type: 'asset',
        fileName: 'licenses/llguidance.json',
        source: JSON.stringify([{ name: 'llguidance', version, identifier: 'MIT', text }]),
      })
    },
  }
}

/** `models/`: the catalog in `folder`, the files it lists and the notices on them; nothing else. */
export function emitModels(folder: string): Plugin {
  return {
    name: 'inorigin:models',
    generateBundle() {
      const source = readFileSync(join(folder, 'catalog.json'), 'utf8')
      const catalog = JSON.parse(source) as CatalogDocument
      this.emitFile({ type: 'asset', fileName: 'models/catalog.json', source })
      for (const entry of catalog.entries) {
        const resources = ownFiles(entry)
        let bytes = 0
        for (const resource of resources) {
          for (const { name, content } of readParts(folder, resource)) {
            bytes += content.length
            this.emitFile({ type: 'asset', fileName: `models/${name}`, source: content })
          }
        }
        for (const model of foldersOf(resources)) {
          const notice = join(folder, model, 'NOTICE.md')
          if (!existsSync(notice)) continue
          const fileName = `models/${model}/NOTICE.md`
          this.emitFile({ type: 'asset', fileName, source: readFileSync(notice) })
        }
        if (bytes > MODEL_LIMIT) {
          this.error(`${entry.tag} has ${bytes} bytes; the package carries at most ${MODEL_LIMIT}.`)
        }
      }
    },
  }
}

/**
 * Copies the files of the playground's own models from `folder` into `target`, with their licenses. The package does
 * not carry them, and neither does the list of files that the page keeps, because the store keeps models.
 */
export function copyPlaygroundModels(folder: string, target: string): void {
  const source = readFileSync(join(folder, 'playground.json'), 'utf8')
  const { entries } = JSON.parse(source) as CatalogDocument
  const resources = entries.flatMap(ownFiles)
  for (const resource of resources)
    for (const { name } of readParts(folder, resource))
      cpSync(join(folder, name), join(target, name))
  for (const model of foldersOf(resources))
    for (const name of ['LICENSE', 'NOTICE.md'])
      cpSync(join(folder, model, name), join(target, model, name))
}

type Entry = CatalogDocument['entries'][number]
type Resource = NonNullable<Entry['implementations']>[number]['resources'][number]

/** Returns the files of an entry that lie beside the catalog, each once. */
function ownFiles({ implementations = [] }: Entry): Resource[] {
  const all = implementations.flatMap((one) => one.resources)
  const own = all.filter(({ url }) => !URL.canParse(url))
  return [...new Map(own.map((one) => [one.url, one])).values()]
}

/** Returns the folders of files. */
const foldersOf = (resources: readonly Resource[]): Set<string> =>
  new Set(resources.map(({ url }) => url.split('/', 1)[0] ?? ''))

/** Reads a file, or its parts. Throws if its bytes are not those of the catalog. */
function readParts(folder: string, { url, bytes, sha256, partBytes }: Resource) {
  const count = partBytes === undefined ? 0 : Math.ceil(bytes / partBytes)
  const names = count === 0 ? [url] : Array.from({ length: count }, (_, part) => `${url}.${part}`)
  const parts = names.map((name) => ({ name, content: readFileSync(join(folder, name)) }))
  const hash = createHash('sha256')
  for (const { content } of parts) hash.update(content)
  if (hash.digest('hex') !== sha256)
    throw new Error(`${url} is not the file that the catalog describes. Write the catalog again.`)
  return parts
}

/** Files of the playground whose names have no digests: its manifest and icons, and its first script. */
export function emitManifest(folder: string): Plugin {
  return {
    name: 'inorigin:manifest',
    generateBundle() {
      const icons = readdirSync(join(folder, 'icons')).map((name) => `icons/${name}`)
      for (const fileName of ['manifest.webmanifest', 'looks.js', ...icons]) {
        this.emitFile({ type: 'asset', fileName, source: readFileSync(join(folder, fileName)) })
      }
    },
  }
}

/**
 * The line before the playground's service worker: the files of its page in `folder`, and a version
 * that changes with any of them, because their names have digests and `index.html` leads to all.
 */
export function describeShell(folder: string): string {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const isFile = (name: string) => statSync(join(folder, name)).isFile()
  const files = names.filter(isFile).map((name) => name.split(sep).join('/'))
  const page = readFileSync(join(folder, 'index.html'))
  const version = createHash('sha256').update(page).digest('hex')
  return `const SHELL = ${JSON.stringify({ version, files: ['./', ...files] })};`
}
