/** `inorigin catalog refresh`: writes into a catalog what its hub says of the models listed by repository. */
import { writeFileSync } from 'node:fs'
import { limitsOf } from '../catalog/hub/entry.ts'
import { resolveHub } from '../catalog/hub/resolve.ts'
import type { CatalogDocument, HubEntry, ModelEntry } from '../catalog/schema.ts'
import { InoriginError } from '../error.ts'
import { checkDocument, readDocument } from './document.ts'

export interface RefreshOptions {
  /** The catalog's path. */
  file: string
  /** In place of the hub that entries name. */
  host?: string | undefined
  /** Told before each repository is looked up. */
  onEntry: (tag: string, repository: string) => void
  signal: AbortSignal
}

export interface RefreshResult {
  /** Tags whose files are listed anew. */
  refreshed: string[]
  /** Those that stay as they were, and why. */
  failed: { tag: string; why: string }[]
}

/** Where the public hub is: its token is sent nowhere else. */
const PUBLIC = 'https://huggingface.co/'

/**
 * Looks every hub entry up again at its revision and writes commit, files, lengths and hashes into the
 * catalog. An entry that cannot be looked up stays as it was. Throws `invalid_request` when the file is
 * not a catalog.
 */
export async function refreshCatalog(options: RefreshOptions): Promise<RefreshResult> {
  const { file, host, onEntry, signal } = options
  const document = readDocument(file)
  const catalog = checkDocument(document, file, true)
  const result: RefreshResult = { refreshed: [], failed: [] }
  const entries: CatalogDocument['entries'] = []
  for (const [index, written] of document.entries.entries()) {
    const entry = catalog.entries[index]
    if (!('huggingface' in written) || entry?.type !== 'model' || !entry.hub) {
      entries.push(written)
      continue
    }
    onEntry(entry.tag, entry.hub.repository)
    try {
      entries.push(await refresh(written, entry, host, signal))
      result.refreshed.push(entry.tag)
    } catch (error) {
      entries.push(written)
      result.failed.push({ tag: entry.tag, why: InoriginError.from(error).message })
    }
  }
  const refreshed = { ...document, entries }
  // What cannot be read again is not written.
  checkDocument(refreshed, file, true)
  writeFileSync(file, `${JSON.stringify(refreshed, null, 2)}\n`)
  return result
}

async function refresh(
  written: HubEntry,
  { hub }: ModelEntry,
  host: string | undefined,
  signal: AbortSignal,
): Promise<HubEntry> {
  if (!hub) return written
  const source = { ...hub, ...(host !== undefined && { host: host.replace(/\/*$/, '/') }) }
  const token = source.host === PUBLIC ? process.env['HF_TOKEN'] : undefined
  const { revision, created, context, implementations } = await resolveHub(source, { signal, token })
  return { created, ...written, revision, ...limitsOf(hub, context), implementations }
}
