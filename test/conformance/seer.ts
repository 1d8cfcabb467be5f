/** The model of random weights that sees images, for a run of the clients. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Hub, openHub, repositoryOf } from '../support/hub.ts'
import type { Seer } from './client.ts'

const FOLDER = join(import.meta.dirname, '../models/vision')
const MODEL = '@conformance/seer'

/** Path of the default catalog of a site. */
const CATALOG = '/inorigin/models/catalog.json'

export interface SeerSite {
  seer: Seer
  hub: Hub
  /** The default catalog with the model in addition, as a page of the site. */
  pages: Record<string, string>
}

/** Opens a hub with the model; needs the built playground. The caller closes the hub. */
export async function openSeer(): Promise<SeerSite> {
  const hub = await openHub({ 'conformance/seer': repositoryOf(FOLDER, 'd'.repeat(40)) })
  const entry = {
    tag: MODEL,
    huggingface: 'conformance/seer',
    host: hub.url,
    capabilities: { imageInput: true },
  }
  const file = join(import.meta.dirname, '../../dist-demo', CATALOG)
  const catalog = JSON.parse(readFileSync(file, 'utf8')) as { entries: object[] }
  const pages = { [CATALOG]: JSON.stringify({ ...catalog, entries: [...catalog.entries, entry] }) }
  const read = (name: string): string => readFileSync(join(FOLDER, `${name}.png`), 'base64')
  // One tile of four rows, and the three markers around it.
  return { hub, pages, seer: { model: MODEL, images: [read('wide'), read('other')], tokens: 7 } }
}
