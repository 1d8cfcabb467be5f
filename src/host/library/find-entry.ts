/** Finds the catalog entry of a tag and checks its type. */
import { isEmbedder, unsupportedModelError } from '../../catalog/find-entry.ts'
import type { ModelEntry, PredictorEntry } from '../../catalog/schema.ts'
import { InoriginError } from '../../error.ts'
import { hasImages, imagesRefused } from '../../generation/images.ts'
import type { GenerationRequest, Tag } from '../../types/index.ts'
import type { Entries } from './entries.ts'

type EntryFinder = Pick<Entries, 'find' | 'all'>

/**
 * Resolves with the requested model. Rejects if the tag is not a language model; the message names
 * what to use instead. Rejects images if the model does not accept them.
 */
export async function findModel(
  entries: EntryFinder,
  request: GenerationRequest,
): Promise<ModelEntry> {
  const { model: tag } = request
  const entry = await entries.find(tag, 'model')
  if (isEmbedder(entry))
    throw unsupportedModelError(tag, 'embeds texts and does not chat; use /v1/embeddings')
  if (entry.type !== 'model') {
    throw wrongType(tag, 'model', 'is a predictor; run it with server.predict()')
  }
  if (!entry.capabilities?.imageInput && hasImages(request))
    throw imagesRefused(request, await findImageModel(entries))
  return entry
}

/** Resolves with the tag of the first model that accepts images; `undefined` if there is none. */
async function findImageModel(entries: EntryFinder): Promise<Tag | undefined> {
  const all = await entries.all()
  return all.find((entry) => entry.type === 'model' && entry.capabilities?.imageInput)?.tag
}

/** Resolves with the predictor. Rejects with `not_found` if the tag is unknown or a model. */
export async function findPredictor(
  entries: Pick<Entries, 'find'>,
  tag: Tag,
): Promise<PredictorEntry> {
  const entry = await entries.find(tag, 'tag')
  if (entry.type === 'predictor') return entry
  throw notPredictor(tag)
}

export function notPredictor(tag: Tag): InoriginError {
  return wrongType(tag, 'tag', 'is a language model; use /v1/chat/completions or /v1/messages')
}

function wrongType(tag: Tag, param: 'model' | 'tag', what: string): InoriginError {
  return new InoriginError('not_found', `${tag} ${what}.`, { code: 'model_not_found', param })
}
