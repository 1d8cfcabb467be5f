/** Validates catalog documents and reports all problems with their paths. */
import * as v from 'valibot'
import { InoriginError } from '../error.ts'
import { CHUNK_BYTES } from '../store/db.ts'
import { getOwner } from './find-entry.ts'
import {
  expandGgufEntry,
  expandHubEntry,
  expandHubPredictor,
  PREDICTOR_FIELDS,
  PUBLIC_HUB_URL,
} from './hub/resolve-hub.ts'
import { expandMlcEntry, expandRecords } from './mlc/expand-entry.ts'
import type { MlcList } from './mlc/list.ts'
import {
  reportDuplicates,
  type ReportProblem,
  resolveUpstream,
  type UpstreamPolicy,
  validateParameters,
} from './upstreams.ts'
import {
  catalogSchema,
  type Catalog,
  type CatalogDocument,
  type CatalogInput,
  type Entry,
  type GgufEntry,
  type HubEntry,
  type Implementation,
  type MlcEntry,
  type PredictorEntry,
  type Resource,
} from './schema.ts'

export interface ValidateOptions {
  source: string
  base: string
  /** `true` if it may list tags of `@inorigin`, which only the package's own catalog may. */
  embedded: boolean
  /** WebLLM's model list, required if {@link referencesMlcList} returns `true`. */
  mlc?: MlcList | undefined
  /** The app's rules for upstream URLs. Default: none is allowed. */
  upstreams?: UpstreamPolicy | undefined
}

const MAX_LISTED_PROBLEMS = 5

/**
 * Returns the document as a catalog with absolute resource URLs. Throws `invalid_request` with the
 * path of every problem, such as `entries[3].implementations[0].resources[1].sha256`.
 */
export function validateCatalog(document: unknown, options: ValidateOptions): Catalog {
  const problems: string[] = []
  const { success, output, issues } = v.safeParse(catalogSchema, document)
  if (Array.isArray(document))
    problems.push('the document: is a list. Put its entries into { "version": 1, "entries": [] }')
  else if (!success)
    problems.push(...issues.map((issue) => `${formatPath(issue.path)}: ${issue.message}`))
  else {
    const catalog = resolveDocument(output, options, problems)
    if (problems.length === 0) return catalog
  }
  const rest = problems.length - MAX_LISTED_PROBLEMS
  const listed = problems.slice(0, MAX_LISTED_PROBLEMS).join('\n')
  const more = rest > 0 ? `\n(and ${rest} more)` : ''
  const { source } = options
  const message = `The catalog ${source} cannot be used:\n${listed}${more}`
  const details = { source, problems }
  throw new InoriginError('invalid_request', message, { code: 'invalid_catalog', details })
}

/** Returns `true` if an entry names a model of WebLLM's list, which validation then needs. */
export function referencesMlcList(document: unknown): boolean {
  const { entries } = Object(document) as { entries?: unknown }
  if (!Array.isArray(entries)) return false
  return entries.some((entry) => [Object(entry).mlc].flat().some((one) => typeof one === 'string'))
}

function resolveDocument(catalog: CatalogInput, options: ValidateOptions, problems: string[]) {
  const { base, embedded } = options
  const report = (path: string, problem: string) => problems.push(`${path}: ${problem}`)
  reportDuplicates(catalog.entries, 'tag', 'entries', report)
  const entries = catalog.entries.map((written, position): Entry => {
    const path = `entries[${position}]`
    const { local, places, upstreams } = divide(written, path, options, report)
    const entry = isLookedUp(local) ? expandEntry(local, path, options, report) : local
    if (!embedded && getOwner(entry.tag) === 'inorigin')
      report(`${path}.tag`, 'tags of @inorigin are reserved; use an owner name of your own')
    if (entry.type === 'model' && entry.maxOutputTokens > entry.maxInputTokens)
      report(`${path}.maxOutputTokens`, 'is above maxInputTokens, which includes the output')
    if (entry.type === 'predictor') {
      validateParameters(entry, path, report)
      validateEmbeddings(entry, `${path}.embeddings`, report)
      validateRerank(entry, `${path}.rerank`, report)
      validateSpeech(entry, `${path}.speech`, report)
    }
    const all = [...entry.implementations, ...upstreams]
    reportDuplicates(all, 'id', `${path}.implementations`, report)
    const implementations = entry.implementations.map((implementation, index): Implementation => {
      const at = places.get(implementation) ?? index
      validateEngine(implementation, entry.type, `${path}.implementations[${at}]`, report)
      const list = `${path}.implementations[${at}].resources`
      reportDuplicates(implementation.resources, 'name', list, report)
      const resources = implementation.resources.map((resource, place): Resource => {
        const { bytes, chunks } = resource
        const count = Math.ceil(bytes / CHUNK_BYTES)
        if (chunks && chunks.length !== count) {
          const needed = `needs ${count} hashes (one per 16 MiB of ${bytes} bytes)`
          report(`${list}[${place}].chunks`, `${needed}, got ${chunks.length}`)
        }
        const url = toAbsoluteUrl(resource.url, base)
        if (!url) report(`${list}[${place}].url`, `"${resource.url}" is not an http or https URL`)
        return { ...resource, url: url ?? '' }
      })
      return { ...implementation, resources }
    })
    if (upstreams.length === 0) return { ...entry, implementations }
    if (entry.type === 'predictor' && !entry.embeddings)
      report(`${path}.implementations`, 'upstream answers only for models and embeddings')
    return { ...entry, implementations, upstreams }
  })
  const { devices } = catalog
  if (devices && !embedded) report('devices', "only the package's own catalog has it; delete it")
  return { version: catalog.version, entries, ...(devices && { devices }) }
}

/** Returns the entry of one that names a hub, a GGUF file or models of MLC. */
function expandEntry(
  entry: HubEntry | GgufEntry | MlcEntry,
  path: string,
  { base, mlc }: ValidateOptions,
  report: ReportProblem,
): Entry {
  if ('gguf' in entry) {
    const url = toAbsoluteUrl(entry.gguf, base)
    if (!url) report(`${path}.gguf`, `"${entry.gguf}" is not an http or https URL`)
    return expandGgufEntry(entry, url ?? base)
  }
  const { host: given = PUBLIC_HUB_URL } = entry
  const host = toAbsoluteUrl(given.endsWith('/') ? given : `${given}/`, base)
  if (!host) report(`${path}.host`, `"${entry.host}" is not an http or https URL`)
  if (!('mlc' in entry)) {
    const { type = 'model', signature, implementations } = entry
    const isWritten = PREDICTOR_FIELDS.some((field) => entry[field])
    if (type === 'model' && isWritten)
      report(path, 'has fields of a predictor; set "type" to "predictor"')
    if (type === 'predictor' && (!signature || !implementations))
      report(path, 'is a predictor, so it needs "signature" and "implementations"')
    const found = expandHubPredictor(entry, host ?? undefined)
    return found ?? expandHubEntry(entry, host ?? undefined)
  }
  const absoluteUrl = (url: string) => toAbsoluteUrl(url, base)
  const hub = host ?? PUBLIC_HUB_URL
  const records = expandRecords(entry, mlc, hub, absoluteUrl, path, report)
  return expandMlcEntry(entry, records, host ?? undefined)
}

/** Divides the implementations of an entry into those on this device and those on other servers. */
function divide(
  written: CatalogInput['entries'][number],
  path: string,
  { base, upstreams: policy }: ValidateOptions,
  report: ReportProblem,
) {
  const listed = written.implementations ?? []
  const own = listed.filter((one) => one.engine !== 'upstream')
  const upstreams = listed.flatMap((one, at) =>
    one.engine === 'upstream'
      ? [resolveUpstream(one, base, policy, report, `${path}.implementations[${at}]`)]
      : [],
  )
  const places = new Map<object, number>(listed.map((one, at) => [one, at]))
  // A hub lists the files of an entry without local implementations, as if it had no list.
  const implementations = isLookedUp(written) && own.length === 0 ? undefined : own
  return {
    local: { ...written, implementations } as CatalogDocument['entries'][number],
    places,
    upstreams,
  }
}

const isLookedUp = <T extends object>(
  entry: T,
): entry is Extract<T, { mlc: unknown } | { huggingface: string } | { gguf: string }> =>
  'mlc' in entry || 'huggingface' in entry || 'gguf' in entry

/** Reports an output that is not floats, and an input that does not exist. */
function validatePorts(
  { signature }: PredictorEntry,
  { input, output }: { input: string; output: string },
  path: string,
  report: ReportProblem,
): void {
  const type = signature.outputs.find(({ name }) => name === output)?.type
  if (!type) report(`${path}.output`, `there is no output ${output}`)
  else if (!/^float(16|32)$/.test(type))
    report(`${path}.output`, `${output} is ${type}, not floats`)
  if (!signature.inputs.some(({ name }) => name === input))
    report(`${path}.input`, `there is no input ${input}`)
}

/** Returns how each implementation reads a text input, with the implementation's id. */
const textLayoutsOf = ({ signature, implementations }: PredictorEntry, input: string) =>
  signature.inputs.some(({ name }) => name === input)
    ? implementations.map(({ id, bindings = {} }) => ({
        id,
        layout: Object.hasOwn(bindings, input) ? bindings[input]?.text : undefined,
      }))
    : []

function validateEmbeddings(entry: PredictorEntry, path: string, report: ReportProblem): void {
  const { embeddings } = entry
  if (!embeddings) return
  const { input, maxInputTokens } = embeddings
  validatePorts(entry, embeddings, path, report)
  for (const { id, layout } of textLayoutsOf(entry, input)) {
    // Texts of different lengths share a batch, so padding must be masked.
    if (!layout?.mask)
      report(`${path}.input`, `${id} does not bind ${input} with \`text\` and a mask`)
    else if (layout.most < maxInputTokens)
      report(`${path}.maxInputTokens`, `is above the ${layout.most} tokens that ${id} reads`)
  }
}

function validateRerank(entry: PredictorEntry, path: string, report: ReportProblem): void {
  const { rerank } = entry
  if (!rerank) return
  validatePorts(entry, rerank, path, report)
  for (const { id, layout } of textLayoutsOf(entry, rerank.input)) {
    // Pairs of different lengths share a batch, so padding must be masked.
    if (!layout?.mask || !layout.pair)
      report(
        `${path}.input`,
        `${id} does not bind ${rerank.input} with \`text\`, a mask and a pair`,
      )
  }
}

function validateSpeech(entry: PredictorEntry, path: string, report: ReportProblem): void {
  const { speech, signature } = entry
  if (!speech) return
  validatePorts(entry, speech, path, report)
  for (const { id, layout } of textLayoutsOf(entry, speech.input))
    if (!layout) report(`${path}.input`, `${id} does not bind ${speech.input} with \`text\``)
  const find = (name: string | undefined) => signature.inputs.find((input) => input.name === name)
  const { speed, voice } = speech
  const numbers = find(speed?.input)?.defaultValue
  if (speed && !(Array.isArray(numbers) && typeof numbers[speed.index] === 'number'))
    report(`${path}.speed`, `${speed.input} has no default value with a number at ${speed.index}`)
  if (voice !== undefined && !find(voice)?.enumeration?.length)
    report(`${path}.voice`, `${voice} is no input with an enumeration of voices`)
}

function validateEngine(
  { engine, device, precision, resources }: Implementation,
  type: Entry['type'],
  path: string,
  report: ReportProblem,
): void {
  if (precision && (type !== 'model' || engine !== 'onnx'))
    report(`${path}.precision`, 'applies only to language models in ONNX; delete it')
  if (engine !== 'mlc') return
  if (type !== 'model') report(`${path}.engine`, 'mlc runs only language models')
  if (device !== 'webgpu') report(`${path}.device`, 'mlc runs only on webgpu')
  if (resources.length > 0 && !resources.some((resource) => resource.type === 'wasm'))
    report(`${path}.resources`, 'mlc needs the compiled library of the model, of type wasm')
}

/**
 * Returns an absolute http or https URL, or `null` if it is none. Files of a page with another scheme,
 * such as that of a browser extension, may lie beside its catalog.
 */
export function toAbsoluteUrl(url: string, base: string): string | null {
  if (!URL.canParse(url, base)) return null
  const { protocol, host, href } = new URL(url, base)
  const own = new URL(base)
  // `origin` tells nothing for other schemes.
  const isBeside = host !== '' && host === own.host && protocol === own.protocol
  return /^https?:$/.test(protocol) || isBeside ? href : null
}

/** Formats a path, such as `entries[3].implementations[0].bindings["input.1"]`. */
function formatPath(path: readonly { key: unknown }[] = []): string {
  const steps = path.map(({ key }) => {
    const name = String(key)
    if (typeof key === 'number') return `[${name}]`
    return /^[\w$]+$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`
  })
  return steps.join('').replace(/^\./, '') || 'the document'
}
