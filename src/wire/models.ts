import { InoriginError } from '../error.ts'
import type { Model, ModelCapabilities } from '../types/index.ts'
import { shorten } from '../values/text.ts'

const supports = (supported = false) => ({ supported })
const no = supports()

function toCapabilitiesJson(given: ModelCapabilities) {
  const { tools, imageInput, structuredOutputs, embeddings, rerank, speech } = given
  const thinking = supports(given.thinking)
  return {
    batch: no,
    citations: no,
    code_execution: no,
    context_management: no,
    effort: {
      ...thinking,
      low: thinking,
      medium: thinking,
      high: thinking,
      xhigh: thinking,
      max: thinking,
    },
    image_input: supports(imageInput),
    pdf_input: no,
    server_tools: { ...no, code_execution: no, web_search: no },
    structured_outputs: supports(structuredOutputs),
    thinking: {
      ...thinking,
      types: {
        adaptive: thinking,
        between_tools: no,
        disabled: supports(true),
        enabled: thinking,
      },
    },
    tools: supports(tools),
    embeddings: { ...supports(embeddings !== undefined), ...embeddings },
    rerank: supports(rerank),
    speech: {
      ...supports(speech !== undefined),
      ...(speech && { voices: speech.voices, sample_rate: speech.rate }),
    },
  }
}

/** Returns a model with the fields that clients of both styles expect. */
export function toModelJson(model: Model) {
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
    ...(model.description !== undefined && { description: model.description }),
    ...(model.license !== undefined && { license: model.license }),
    ...(model.languages && { languages: model.languages }),
    ...(model.parameters !== undefined && { parameters: model.parameters }),
    ...(model.quantization !== undefined && { quantization: model.quantization }),
    capabilities: toCapabilitiesJson(model.capabilities),
  }
}

/** Returns all models in one page, narrowed by `after_id` and `before_id` so that paging ends. */
export function toModelListJson(models: readonly Model[], query: URLSearchParams) {
  const position = (key: string): number => models.findIndex(({ tag }) => tag === query.get(key))
  const before = position('before_id')
  const data = models
    .slice(position('after_id') + 1, before === -1 ? undefined : before)
    .map(toModelJson)
  return toPageJson(data, false)
}

/** Returns a page of a list, with the ids by which clients ask for the next page. */
export function toPageJson(data: ReadonlyArray<{ id: string }>, has_more: boolean) {
  const [first_id, last_id] = [data[0]?.id ?? null, data.at(-1)?.id ?? null]
  return { object: 'list', data, first_id, last_id, has_more }
}

/** Returns the model of that tag. Throws `not_found` if there is none. */
export function getModel(models: readonly Model[], tag: string): Model {
  const model = models.find((candidate) => candidate.tag === tag)
  if (model) return model
  const message = `Model \`${shorten(tag)}\` not found. GET /v1/models lists the available models.`
  throw new InoriginError('not_found', message, { code: 'model_not_found', param: 'model' })
}
