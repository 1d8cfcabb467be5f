/** The command `inorigin catalog refresh`. */
import { basename, dirname } from 'node:path'
import {
  completeModel,
  PREDICTOR_FIELDS,
  PUBLIC_HUB_URL,
  type ResolvedHub,
  toTokenLimits,
} from '../../catalog/hub/resolve-hub.ts'
import { completeMlcEntry } from '../../catalog/mlc/expand-entry.ts'
import { resolveMlc } from '../../catalog/mlc/resolve-mlc.ts'
import type {
  CatalogDocument,
  Entry,
  GgufEntry,
  GgufSource,
  HubEntry,
  HubSource,
  Implementation,
  MlcEntry,
  ModelEntry,
} from '../../catalog/schema.ts'
import { refuse } from '../../draft/refuse.ts'
import { resolveHub } from '../../draft/hub.ts'
import { resolveGgufRepository, resolveGgufUrl } from '../../draft/remote-gguf.ts'
import { InoriginError } from '../../error.ts'
import { omit } from '../../values/objects.ts'
import { readDocument, validateDocument } from '../project-options.ts'
import { defineCommand, valued } from '../command.ts'
import { print, printLines } from '../output.ts'
import { assertNoLinks, writeBelow } from '../write-file.ts'

export const REFRESH = defineCommand({
  name: 'catalog refresh',
  operands: [{ name: 'file', about: 'The catalog, a JSON document', isRequired: true }],
  usage: '[--host <url>]',
  about: [
    'Looks up every model that a catalog lists by its hub repository, as a GGUF file ("gguf") or',
    'as a WebLLM model ("mlc"), and writes its commit, files, lengths and hashes into the catalog, so that',
    'browsers need no look-up. License and languages are written where the card of the model',
    'names them and the catalog does not. A model that cannot be looked up is not changed, and',
    'the exit code is then 1. The environment variable HF_TOKEN may hold an access token for',
    'private repositories.',
  ],
  options: { host: valued('<url>', 'Mirror to use instead of the hub that entries name') },
  async run({ host }, [file = '']) {
    const onEntry = (tag: string, name: string) => printLines(`${tag}: looking up ${name}`)
    const { signal } = new AbortController()
    const { refreshed, failed, unknown } = await refreshCatalog({ file, host, onEntry, signal })
    const gaps = unknown.map(
      ({ tag, fields }) => `${tag}: the hub names no ${fields.join(', no ')}.`,
    )
    const kept = failed.map(({ tag, why }) => `${tag} was not changed. ${why}`)
    print(process.stderr, [...gaps, ...kept])
    printLines(`${file}: ${refreshed.length} models refreshed, ${failed.length} not.`)
    return failed.length > 0 ? 1 : 0
  },
})

interface RefreshOptions {
  file: string
  /** URL that replaces the hub that entries name. */
  host?: string | undefined
  /** Called before each look-up with the repository, or with the ids of the records. */
  onEntry: (tag: string, name: string) => void
  signal: AbortSignal
}

/**
 * Looks up every model that is listed by its repository or as a WebLLM model, at its revision.
 * Writes commit, files, lengths and hashes into the catalog, and license and languages where the
 * catalog has none. An entry whose look-up fails stays unchanged; if all fail, the file does.
 * `unknown` names the fields that neither the hub nor the catalog has. Throws `invalid_request` if the file is not a catalog, or is a link.
 */
export async function refreshCatalog(options: RefreshOptions) {
  const { file, onEntry } = options
  assertNoLinks(dirname(file), basename(file))
  const document = readDocument(file)
  const catalog = validateDocument(document, file, true)
  const refreshedTags: string[] = []
  const failed: { tag: string; why: string }[] = []
  const unknown: { tag: string; fields: string[] }[] = []
  const entries: CatalogDocument['entries'] = []
  for (const [index, written] of document.entries.entries()) {
    const entry = catalog.entries[index]
    if (!needsLookUp(written) || !entry) {
      entries.push(written)
      continue
    }
    onEntry(entry.tag, nameOf(entry))
    try {
      const found = await refreshEntry(written, entry, options)
      entries.push(withUpstreams(found, written))
      refreshedTags.push(entry.tag)
      const fields = (['license', 'languages'] as const).filter((name) => !found[name])
      if (fields.length > 0) unknown.push({ tag: entry.tag, fields })
    } catch (error) {
      entries.push(written)
      failed.push({ tag: entry.tag, why: InoriginError.from(error).message })
    }
  }
  if (refreshedTags.length === 0) return { refreshed: refreshedTags, failed, unknown }
  const refreshed = { ...document, entries }
  // An invalid catalog must not be written, since it could not be read again.
  validateDocument(refreshed, file, true)
  writeBelow(dirname(file), basename(file), { text: `${JSON.stringify(refreshed, null, 2)}\n` })
  return { refreshed: refreshedTags, failed, unknown }
}

type WrittenEntry = CatalogDocument['entries'][number]
type LookedUpEntry = HubEntry | GgufEntry | MlcEntry

const needsLookUp = (written: WrittenEntry): written is LookedUpEntry =>
  'mlc' in written || 'huggingface' in written || 'gguf' in written

/** Returns the refreshed entry with the upstream implementations that the file lists. */
function withUpstreams(refreshed: LookedUpEntry, written: WrittenEntry): WrittenEntry {
  const listed: readonly { engine: string }[] = written.implementations ?? []
  const upstreams = listed.filter(({ engine }) => engine === 'upstream') as Implementation[]
  const others = refreshed.implementations?.filter((one) => !upstreams.includes(one)) ?? []
  return { ...refreshed, implementations: [...others, ...upstreams] }
}

/** Returns what is looked up: a repository, a URL or the ids of records. */
function nameOf(entry: Entry): string {
  if (entry.type === 'predictor') return entry.hub?.repository ?? entry.tag
  const records = entry.mlc?.map((one) => one.model_id).join(', ') ?? ''
  return entry.hub?.repository ?? entry.gguf?.url ?? records
}

type LookUpAccess = Pick<RefreshOptions, 'host' | 'signal'>

async function refreshEntry(
  written: LookedUpEntry,
  entry: Entry,
  access: LookUpAccess,
): Promise<LookedUpEntry> {
  if (!('mlc' in written) && !('gguf' in written)) return refreshHub(written, entry, access)
  if (entry.type === 'predictor') return written
  return 'mlc' in written ? refreshMlc(written, entry, access) : refreshGguf(written, entry, access)
}

/** Looks up a model of a hub. Rejects with `unavailable` and `not_found`. */
export function lookUpHub(hub: HubSource, { host, signal }: LookUpAccess): Promise<ResolvedHub> {
  const source = { ...hub, host: toHubUrl(hub.host, host) }
  const access = { signal, token: getAccessToken(source.host) }
  const { file } = source
  if (file === undefined) return resolveHub(source, access)
  return resolveGgufRepository({ ...source, file }, access)
}

async function refreshHub(
  written: HubEntry,
  { hub }: Entry,
  access: LookUpAccess,
): Promise<HubEntry> {
  if (!hub) return written
  const found = await lookUpHub(hub, access)
  const { revision, predictor, implementations } = found
  const kept = omit(written, ['type', ...PREDICTOR_FIELDS])
  const described = { ...toFacts(found), ...kept, ...(revision && { revision }) }
  if (!predictor) return { ...described, ...toFiles(hub, found) }
  const own = omit(described, ['maxInputTokens', 'maxOutputTokens'])
  return { ...predictor, ...own, type: 'predictor', implementations }
}

async function refreshGguf(written: GgufEntry, { gguf }: ModelEntry, { signal }: LookUpAccess) {
  if (!gguf) return written
  assertAbsoluteUrls([written.gguf])
  const found = await resolveGgufUrl(gguf, { signal })
  return { ...toFacts(found), ...written, ...toFiles(gguf, found) }
}

/** Returns what the catalog may say in another way. */
function toFacts(found: ResolvedHub) {
  const { created, name, license, languages, parameters, quantization, capabilities } = found
  return { name, created, license, languages, parameters, quantization, capabilities }
}

const toFiles = (source: HubSource | GgufSource, { context, implementations }: ResolvedHub) => ({
  ...toTokenLimits(source, context),
  implementations,
})

/** Lists all files that any device may need. */
async function refreshMlc(written: MlcEntry, entry: ModelEntry, access: LookUpAccess) {
  const { hub, mlc: records = [] } = entry
  const { host, signal } = access
  const own = [written.mlc].flat().filter((one) => typeof one === 'object')
  assertAbsoluteUrls(own.flatMap(({ model, model_lib }) => [model, model_lib]))
  const isRecord = (id: string) => records.some((record) => record.model_id === id)
  // Implementations of the repository are listed anew below.
  const kept = entry.implementations.filter(({ id }) => !hub || isRecord(id))
  let found: ModelEntry = { ...entry, implementations: kept }
  for (const record of records) {
    const model = record.model.replace(PUBLIC_HUB_URL, toHubUrl(PUBLIC_HUB_URL, host))
    const files = await resolveMlc({ ...record, model }, { signal, token: getAccessToken(model) })
    found = completeMlcEntry(found, record, files)
  }
  if (hub) found = completeModel(found, await lookUpHub(hub, access))
  const { created, license, languages, maxInputTokens, maxOutputTokens, implementations } = found
  return {
    created,
    license,
    languages,
    ...written,
    maxInputTokens,
    maxOutputTokens,
    implementations,
  }
}

const toHubUrl = (own: string, instead: string | undefined): string =>
  instead === undefined ? own : instead.replace(/\/*$/, '/')

/** Returns the access token for the public hub, and `undefined` for every other host. */
const getAccessToken = (url: string): string | undefined =>
  url.startsWith(PUBLIC_HUB_URL) ? process.env['HF_TOKEN'] : undefined

/** Throws for URLs relative to the catalog, since its own URL is unknown here. */
function assertAbsoluteUrls(urls: readonly string[]): void {
  const url = urls.find((one) => !URL.canParse(one))
  if (url === undefined) return
  const what = `${url} is relative to the catalog, whose URL is not known here.`
  throw refuse(what, 'Write the full URL, or add the folder with `inorigin add`.')
}
