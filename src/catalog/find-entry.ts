/** Finds the entry of a tag, and converts entries to what `/v1` shows. */
import { InoriginError } from '../error.ts'
import type { Model, Predictor, Tag } from '../types/index.ts'
import { sortBySimilarity } from '../values/text.ts'
import type {
  Catalog,
  Embedder,
  Entry,
  ModelEntry,
  PredictorEntry,
  Reranker,
  Speaker,
} from './schema.ts'

const MAX_LISTED_TAGS = 5

/**
 * Returns the entry of a tag. Throws `not_found` with the most similar tags. `param` is the field
 * of the request that holds the tag. `fits` filters the tags that the message suggests.
 */
export function findEntry(
  { entries }: Pick<Catalog, 'entries'>,
  tag: Tag,
  param: 'model' | 'tag',
  // A predictor's tag does not help a request for a model.
  fits: (entry: Entry) => boolean = ({ type }) => param === 'tag' || type === 'model',
): Entry {
  const entry = entries.find((one) => one.tag === tag)
  if (entry) return entry
  const tags = entries.filter(fits).map((one) => one.tag)
  const known = sortBySimilarity(tags, String(tag)).slice(0, MAX_LISTED_TAGS).join(', ')
  const rest = tags.length - MAX_LISTED_TAGS
  const more = rest > 0 ? ` and ${rest} more` : ''
  const hint = known ? `Available: ${known}${more}.` : 'The catalog is empty.'
  const asked = JSON.stringify(String(tag).slice(0, 100))
  throw modelNotFoundError(`Unknown ${param} ${asked}. ${hint}`, param)
}

const modelNotFoundError = (message: string, param: 'model' | 'tag'): InoriginError =>
  new InoriginError('not_found', message, { code: 'model_not_found', param })

/**
 * Returns the entry of a tag that embeds texts. Throws `not_found` if there is none, and
 * `invalid_request` if it is a language model.
 */
export const findEmbedder = (catalog: Pick<Catalog, 'entries'>, tag: Tag): Embedder =>
  findOfTask(catalog, tag, isEmbedder, { field: 'embeddings', does: 'embed', what: 'texts' })

/** Returns the entry of a tag that scores documents. Throws as {@link findEmbedder}. */
export const findReranker = (catalog: Pick<Catalog, 'entries'>, tag: Tag): Reranker =>
  findOfTask(catalog, tag, isReranker, { field: 'rerank', does: 'score', what: 'documents' })

/** Returns the entry of a tag that speaks texts. Throws as {@link findEmbedder}. */
export const findSpeaker = (catalog: Pick<Catalog, 'entries'>, tag: Tag): Speaker =>
  findOfTask(catalog, tag, isSpeaker, { field: 'speech', does: 'speak', what: 'texts' })

/** Returns the entry of a tag that fits. `field` is that of entries which do it. */
function findOfTask<Fitting extends PredictorEntry>(
  catalog: Pick<Catalog, 'entries'>,
  tag: Tag,
  isFit: (entry: Entry) => entry is Fitting,
  { field, does, what }: { field: string; does: string; what: string },
): Fitting {
  const all = catalog.entries.filter(isFit).map((entry) => entry.tag)
  if (all.length === 0) {
    const none = `No model of this catalog ${does}s ${what}.`
    throw modelNotFoundError(`${none} Add a predictor whose entry has \`${field}\`.`, 'model')
  }
  const entry = findEntry(catalog, tag, 'model', isFit)
  if (isFit(entry)) return entry
  const others = all.slice(0, MAX_LISTED_TAGS).join(', ')
  const instead = `does not ${does} ${what}; ${others} does`
  if (entry.type === 'model') throw unsupportedModelError(tag, `generates text and ${instead}`)
  throw modelNotFoundError(`${tag} is a predictor that ${instead}.`, 'model')
}

export const unsupportedModelError = (tag: Tag, what: string): InoriginError =>
  new InoriginError('invalid_request', `${tag} ${what}.`, {
    code: 'unsupported_model',
    param: 'model',
  })

export const isEmbedder = (entry: Entry): entry is Embedder =>
  entry.type === 'predictor' && entry.embeddings !== undefined

/** Returns `true` for a predictor that scores documents. */
export const isReranker = (entry: Entry): entry is Reranker =>
  entry.type === 'predictor' && entry.rerank !== undefined

/** Returns `true` for a predictor that speaks texts. */
export const isSpeaker = (entry: Entry): entry is Speaker =>
  entry.type === 'predictor' && entry.speech !== undefined

type Listed = ModelEntry | Embedder | Reranker | Speaker

/** Returns `true` for an entry of `/v1/models`: all but predictors without an endpoint. */
export const isListed = (entry: Entry): entry is Listed =>
  entry.type === 'model' || isEmbedder(entry) || isReranker(entry) || isSpeaker(entry)

/** Returns a model, or a predictor with an endpoint of its own, in the form of `/v1/models`. */
export function toModel(entry: Listed): Model {
  const { tag, name, created, description, license, languages, parameters, quantization } = entry
  const card = {
    ...(description && { description }),
    ...(license && { license }),
    ...(languages && { languages }),
    ...(parameters && { parameters }),
    ...(quantization && { quantization }),
  }
  if (entry.type === 'predictor') {
    const { embeddings, rerank, speech } = entry
    const maxInputTokens = embeddings?.maxInputTokens ?? countTextTokens(entry)
    const capabilities = {
      ...(embeddings && { embeddings: { dimensions: embeddings.dimensions } }),
      ...(rerank && { rerank: true }),
      ...(speech && { speech: { voices: listVoices({ ...entry, speech }), rate: speech.rate } }),
    }
    return { tag, name, created, maxInputTokens, maxOutputTokens: null, ...card, capabilities }
  }
  const { maxInputTokens, maxOutputTokens, capabilities = {} } = entry
  return { tag, name, created, maxInputTokens, maxOutputTokens, ...card, capabilities }
}

/** Returns the maximum number of tokens of a text or a pair, which all implementations read. */
function countTextTokens({ rerank, speech, implementations }: PredictorEntry): number {
  const input = rerank?.input ?? speech?.input ?? ''
  return Math.min(
    ...implementations.flatMap(({ bindings = {} }) => bindings[input]?.text?.most ?? []),
  )
}

/** Voice of a model that names none, and the default voice of every other model. */
export const DEFAULT_VOICE = 'default'

/** Returns the voices of a model, the default one first. */
export function listVoices({ signature, speech }: Speaker): string[] {
  const input = signature.inputs.find(({ name }) => name === speech.voice)
  return [DEFAULT_VOICE, ...(input?.enumeration ?? []).map(({ name }) => name)]
}

/** Returns a predictor in the form of `/v1/predictors/{tag}`, with defaults filled in. */
export function toPredictor(entry: PredictorEntry): Predictor {
  const { tag, name, description = '', card = '', states = [] } = entry
  const { status = 'active', access = 'public' } = entry
  const owner = entry.owner ?? { username: getOwner(tag), created: entry.created }
  // A state that is left out is the one before the first run.
  const isState = (input: string) => states.some((state) => state.input === input)
  const inputs = entry.signature.inputs.map((input) =>
    isState(input.name) ? { ...input, optional: true } : input,
  )
  const signature = { ...entry.signature, inputs }
  return { tag, owner, name, description, card, status, access, signature }
}

/** Returns `owner` of `@owner/name`. */
export const getOwner = (tag: Tag): string => tag.slice(1, tag.indexOf('/'))
