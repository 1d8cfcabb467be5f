/** From a tag to its entry, and from an entry to what `/v1` shows of it. */
import { InoriginError } from '../error.ts'
import type { Model, Predictor, Tag } from '../types/index.ts'
import type { Catalog, Embedder, Entry, ModelEntry, PredictorEntry } from './schema.ts'

/** Tags an error message lists at most. */
const LISTED = 5

/**
 * The entry of that tag. Throws `not_found` with the tags that look most like it; `param` is what the
 * request calls a tag, `fits` whether an entry would have done.
 */
export function findEntry(
  { entries }: Pick<Catalog, 'entries'>,
  tag: Tag,
  param: 'model' | 'tag',
  // Where a model is wanted, a predictor would not do.
  fits: (entry: Entry) => boolean = ({ type }) => param === 'tag' || type === 'model',
): Entry {
  const entry = entries.find((one) => one.tag === tag)
  if (entry) return entry
  const alike = nearest(
    entries.filter(fits).map((one) => one.tag),
    String(tag),
  )
  const known = alike.slice(0, LISTED).join(', ')
  const more = alike.length > LISTED ? ` and ${alike.length - LISTED} more` : ''
  const hint = alike.length > 0 ? `There is ${known}${more}.` : 'The catalog is empty.'
  const asked = JSON.stringify(String(tag).slice(0, 100))
  throw new InoriginError('not_found', `There is no ${asked} here. ${hint}`, {
    code: 'model_not_found',
    param,
  })
}

/**
 * The entry of that tag, which embeds texts. Throws `not_found` where there is none, `invalid_request`
 * where it is a model that does not.
 */
export function findEmbedder(catalog: Pick<Catalog, 'entries'>, tag: Tag): Embedder {
  const all = catalog.entries.filter(isEmbedder).map((entry) => entry.tag)
  if (all.length === 0) {
    const what =
      'No model of this catalog embeds texts; a predictor does whose entry has `embeddings`.'
    throw new InoriginError('not_found', what, { code: 'model_not_found', param: 'model' })
  }
  const entry = findEntry(catalog, tag, 'model', isEmbedder)
  if (isEmbedder(entry)) return entry
  const instead = `does not embed; ${all.slice(0, LISTED).join(', ')} does`
  if (entry.type === 'model') throw unfit(tag, `writes text and ${instead}`)
  const what = `${tag} is a predictor that ${instead}.`
  throw new InoriginError('not_found', what, { code: 'model_not_found', param: 'model' })
}

/** A listed model is asked for what it does not do. */
export function unfit(tag: Tag, what: string): InoriginError {
  const message = `${tag} ${what}.`
  return new InoriginError('invalid_request', message, {
    code: 'unsupported_model',
    param: 'model',
  })
}

/** Whether it embeds texts. */
export function isEmbedder(entry: Entry): entry is Embedder {
  return entry.type === 'predictor' && entry.embeddings !== undefined
}

/** A language model, or one that embeds, as `/v1/models` lists it. */
export function toModel(entry: ModelEntry | Embedder): Model {
  if (entry.type === 'predictor') return toEmbeddingModel(entry)
  const { tag, name, created, maxInputTokens, maxOutputTokens, capabilities = {} } = entry
  return { tag, name, created, maxInputTokens, maxOutputTokens, capabilities }
}

function toEmbeddingModel({ tag, name, created, embeddings }: Embedder): Model {
  const { dimensions, maxInputTokens } = embeddings
  const capabilities = { embeddings: { dimensions } }
  return { tag, name, created, maxInputTokens, maxOutputTokens: null, capabilities }
}

/** A predictor as `/v1/predictors/{tag}` shows it; what the entry leaves out takes its default. */
export function toPredictor(entry: PredictorEntry): Predictor {
  const { tag, name, description = '', card = '', signature } = entry
  const { status = 'active', access = 'public' } = entry
  const owner = entry.owner ?? { username: ownerOf(tag), created: entry.created }
  return { tag, owner, name, description, card, status, access, signature }
}

/** `owner` of `@owner/name`. */
export function ownerOf(tag: Tag): string {
  return tag.slice(1, tag.indexOf('/'))
}

/** Those names, the one that looks most like `to` first. */
export function nearest(names: readonly string[], to: string): string[] {
  return names
    .map((name) => ({ name, far: distance(name, to) }))
    .toSorted((one, other) => one.far - other.far)
    .map(({ name }) => name)
}

/** How many letters must be changed, added or taken away to make one of the other. */
function distance(one: string, other: string): number {
  // What is sent may be of any length; beyond this nothing looks alike.
  const text = Array.from(other.slice(0, 100).toLowerCase())
  let row = Array.from({ length: text.length + 1 }, (_, index) => index)
  for (const [line, letter] of Array.from(one.slice(0, 100).toLowerCase()).entries()) {
    const next = [line + 1]
    for (const [column, same] of text.entries()) {
      const change = (row[column] ?? 0) + (same === letter ? 0 : 1)
      next.push(Math.min(change, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}
