/** Finds the entry of a tag, and converts entries to what `/v1` shows. */
import { InoriginError } from '../error.ts'
import type { Model, Predictor, Tag } from '../types/index.ts'
import { sortBySimilarity } from '../values/text.ts'
import type { TextDecoderLayout } from './decoder-schema.ts'
import type { Catalog, Embedder, Entry, PredictorEntry, Reranker } from './schema.ts'

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

/** A task with an endpoint: what its models do, for errors, and what an entry of one has. */
interface Served<One extends Entry> {
  isServed(entry: Entry): entry is One
  /** Verb and object, such as `embed texts`, in both numbers. */
  does: readonly [one: string, several: string]
  /** What an entry needs. */
  needs: string
}

/** Returns the entry of a tag that embeds texts. Throws as {@link findServed}. */
export const findEmbedder = (catalog: Pick<Catalog, 'entries'>, tag: Tag): Embedder =>
  findServed(catalog, tag, {
    isServed: isEmbedder,
    does: ['embeds texts', 'embed texts'],
    needs: 'whose entry has `embeddings`',
  })

/** Returns the entry of a tag that scores documents. Throws as {@link findServed}. */
export const findReranker = (catalog: Pick<Catalog, 'entries'>, tag: Tag): Reranker =>
  findServed(catalog, tag, {
    isServed: isReranker,
    does: ['scores documents', 'score documents'],
    needs: 'whose entry has `rerank`',
  })

/** Returns the entry of a tag that writes down speech. Throws as {@link findServed}. */
export const findTranscriber = (catalog: Pick<Catalog, 'entries'>, tag: Tag): PredictorEntry =>
  findServed(catalog, tag, {
    isServed: isTranscriber,
    does: ['writes down speech', 'write down speech'],
    needs: 'whose decoder has `speech`, such as Whisper',
  })

/**
 * Returns the entry of a tag that serves a task. Throws `not_found` if there is none, and
 * `invalid_request` if it is a language model.
 */
function findServed<One extends Entry>(
  catalog: Pick<Catalog, 'entries'>,
  tag: Tag,
  { isServed, does: [one, several], needs }: Served<One>,
): One {
  const all = catalog.entries.filter(isServed).map((entry) => entry.tag)
  if (all.length === 0) {
    const what = `No model of this catalog ${one}.`
    throw modelNotFoundError(`${what} Add a predictor ${needs}.`, 'model')
  }
  const entry = findEntry(catalog, tag, 'model', isServed)
  if (isServed(entry)) return entry
  const instead = `does not ${several}; ${all.slice(0, MAX_LISTED_TAGS).join(', ')} does`
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

/** Returns `true` for a predictor that writes down speech. */
export const isTranscriber = (entry: Entry): entry is PredictorEntry =>
  entry.type === 'predictor' && speechOf(entry) !== undefined

const speechOf = ({ implementations }: PredictorEntry) =>
  implementations.find(({ decoder }) => decoder?.speech)?.decoder?.speech

/** Returns `true` for an entry of `/v1/models`: all but predictors without an endpoint. */
export const isListed = (entry: Entry): boolean =>
  entry.type === 'model' || isEmbedder(entry) || isReranker(entry) || isTranscriber(entry)

/** Returns a model, or a predictor with an endpoint of its own, in the form of `/v1/models`. */
export function toModel(entry: Entry): Model {
  const { tag, name, created, license, languages, parameters, quantization } = entry
  const card = {
    ...(license && { license }),
    ...(languages && { languages }),
    ...(parameters && { parameters }),
    ...(quantization && { quantization }),
  }
  if (entry.type === 'predictor') {
    const { embeddings, rerank } = entry
    const speech = speechOf(entry)
    const maxInputTokens =
      embeddings?.maxInputTokens ?? (speech ? countPromptTokens(speech) : countPairTokens(entry))
    const capabilities = {
      ...(speech && { transcription: { translates: speech.tasks !== undefined } }),
      ...(embeddings && { embeddings: { dimensions: embeddings.dimensions } }),
      ...(rerank && { rerank: true }),
    }
    return { tag, name, created, maxInputTokens, maxOutputTokens: null, ...card, capabilities }
  }
  const { maxInputTokens, maxOutputTokens, capabilities = {} } = entry
  return { tag, name, created, maxInputTokens, maxOutputTokens, ...card, capabilities }
}

/** Number of positions of the decoder of every published Whisper. */
const DEFAULT_POSITIONS = 448

/** Returns the maximum number of tokens of a prompt before speech, as Whisper has it. */
export const countPromptTokens = (
  speech: NonNullable<TextDecoderLayout['speech']> | undefined,
): number => Math.floor((speech?.positions ?? DEFAULT_POSITIONS) / 2) - 1

/** Returns the maximum number of tokens of a pair, which all implementations read. */
const countPairTokens = ({ rerank, implementations }: PredictorEntry): number =>
  Math.min(
    ...implementations.flatMap(
      ({ bindings = {} }) => bindings[rerank?.input ?? '']?.text?.most ?? [],
    ),
  )

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
