import { InoriginError } from '../error.ts'
import type { Model, ModelCapabilities } from '../types/index.ts'

const can = (supported = false) => ({ supported })

function capabilitiesOf(given: ModelCapabilities) {
  const { tools, thinking, imageInput, structuredOutputs, embeddings } = given
  return {
    batch: can(),
    citations: can(),
    code_execution: can(),
    context_management: can(),
    effort: {
      ...can(thinking),
      low: can(thinking),
      medium: can(thinking),
      high: can(thinking),
      xhigh: can(thinking),
      max: can(thinking),
    },
    image_input: can(imageInput),
    pdf_input: can(),
    server_tools: { ...can(), code_execution: can(), web_search: can() },
    structured_outputs: can(structuredOutputs),
    thinking: {
      ...can(thinking),
      types: {
        adaptive: can(thinking),
        between_tools: can(),
        disabled: can(true),
        enabled: can(thinking),
      },
    },
    tools: can(tools),
    embeddings: { ...can(embeddings !== undefined), ...embeddings },
  }
}

/** Returns a model with the fields that clients of both styles expect. */
export function modelObject(model: Model) {
  const created = new Date(model.created)
  return {
    id: model.tag,
    type: 'model',
    object: 'model',
    created: Math.floor(created.getTime() / 1000),
    owned_by: /^@?([^/]*)/.exec(model.tag)?.[1] ?? '',
    display_name: model.name,
    created_at: created.toISOString(),
    max_input_tokens: model.maxInputTokens,
    max_tokens: model.maxOutputTokens,
    capabilities: capabilitiesOf(model.capabilities),
  }
}

/**
 * Returns all models in one page. `after_id` and `before_id` narrow it, so a client that reads
 * pages until one is empty terminates.
 */
export function modelList(models: readonly Model[], query: URLSearchParams) {
  const position = (key: string): number => models.findIndex(({ tag }) => tag === query.get(key))
  const before = position('before_id')
  const data = models
    .slice(position('after_id') + 1, before === -1 ? undefined : before)
    .map(modelObject)
  return {
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: false,
  }
}

/** Returns the model of that tag. Throws `not_found` if there is none. */
export function findModel(models: readonly Model[], tag: string): Model {
  const model = models.find((candidate) => candidate.tag === tag)
  if (model) return model
  const message = `Model \`${tag}\` not found. GET /v1/models lists the available models.`
  throw new InoriginError('not_found', message, { code: 'model_not_found', param: 'model' })
}
