/** The embedded model with another tokenizer: a tag of its own, for what nobody should publish. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { CatalogDocument, ModelEntry } from '../../src/catalog/schema.ts'

const FOLDER = 'dist-demo/inorigin/models'
const PATH = '/hostile/tokenizer.json'

export interface HostileModel {
  catalog: CatalogDocument
  /** Pages that the site must serve beside the demo. */
  pages: Record<string, string>
}

/** A model of that tag whose tokenizer needs time that doubles with each letter `a` of a word. */
export function withSlowTokenizer(tag: string): HostileModel {
  const tokenizer = JSON.parse(readFileSync(`${FOLDER}/guide/tokenizer.json`, 'utf8'))
  const [split] = tokenizer.pre_tokenizer.pretokenizers
  split.pattern.Regex = `(?:a+)+#|${split.pattern.Regex}`
  const body = JSON.stringify(tokenizer)
  const { entries } = JSON.parse(readFileSync(`${FOLDER}/catalog.json`, 'utf8')) as CatalogDocument
  const guide = entries.find((entry) => entry.tag === '@inorigin/guide') as ModelEntry
  const implementations = guide.implementations.map((implementation) => ({
    ...implementation,
    resources: implementation.resources.map((resource) =>
      resource.name === 'tokenizer.json'
        ? {
            ...resource,
            url: PATH,
            bytes: Buffer.byteLength(body),
            sha256: createHash('sha256').update(body).digest('hex'),
          }
        : { ...resource, url: new URL(resource.url, 'http://localhost/inorigin/models/').pathname },
    ),
  }))
  const entry: ModelEntry = { ...guide, tag: tag as ModelEntry['tag'], implementations }
  return { catalog: { version: 1, entries: [entry] }, pages: { [PATH]: body } }
}
