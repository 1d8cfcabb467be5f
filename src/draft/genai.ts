/** Translates the configuration of ONNX Runtime GenAI into the files that the engine reads. */
import { isObject } from '../values/objects.ts'
import { type Folder, readJson } from './folder.ts'
import { refuse } from './refuse.ts'

/** Configuration that the model builder of ONNX Runtime GenAI writes. */
export const GENAI_CONFIG = 'genai_config.json'

type Json = Record<string, unknown>

/** A model of ONNX Runtime GenAI: the path of its graph, and files of its configuration. */
export interface GenaiModel {
  graph: string
  /** Content of config.json. */
  config: Json
  /** Content of generation_config.json. */
  generation: Json
}

/** Parts of other pipelines than one graph that answers text. */
const OTHER_PARTS = ['vision', 'speech', 'audio', 'encoder', 'embedding', 'encoder_decoder_init']

/** Reads the file. Rejects with `invalid_request` if it is not the model of one decoder. */
export async function readGenai(folder: Folder): Promise<GenaiModel> {
  const { model, search } = await readJson(folder, GENAI_CONFIG)
  const path = folder.nameOf(GENAI_CONFIG)
  const decoder = isObject(model) ? model['decoder'] : undefined
  if (!isObject(model) || !isObject(decoder))
    throw refuse(`${path} has no "model" with a "decoder".`, 'Build the model again.')
  const other = OTHER_PARTS.find((part) => model[part] !== undefined)
  if (other !== undefined)
    throw refuse(
      `${path} describes a pipeline with "${other}", and only models of text are supported.`,
      'Build a model that takes text alone.',
    )
  const graph = decoder['filename'] ?? 'model.onnx'
  if (decoder['pipeline'] !== undefined || typeof graph !== 'string')
    throw refuse(
      `${path} describes a decoder of several graphs ("pipeline"), and one graph is needed.`,
      'Build the model for another execution provider, such as cpu or webgpu.',
    )
  if (folder.sizeOf(graph) === undefined)
    throw refuse(
      `${path} names ${graph}, and there is no ${folder.nameOf(graph)}.`,
      'Put the file there.',
    )
  return { graph, config: toConfig(model, decoder), generation: toGeneration(model, search) }
}

/** Fields of config.json by those of the model and of its decoder. */
const MODEL_FIELDS = {
  type: 'model_type',
  context_length: 'max_position_embeddings',
  vocab_size: 'vocab_size',
  bos_token_id: 'bos_token_id',
  eos_token_id: 'eos_token_id',
  pad_token_id: 'pad_token_id',
}
const DECODER_FIELDS = {
  hidden_size: 'hidden_size',
  num_attention_heads: 'num_attention_heads',
  num_key_value_heads: 'num_key_value_heads',
  num_hidden_layers: 'num_hidden_layers',
  head_size: 'head_dim',
}

const toConfig = (model: Json, decoder: Json): Json => ({
  ...rename(model, MODEL_FIELDS),
  ...rename(decoder, DECODER_FIELDS),
})

const SEARCH_FIELDS = ['do_sample', 'temperature', 'top_k', 'top_p', 'min_p', 'repetition_penalty']

function toGeneration(model: Json, search: unknown): Json {
  const ids = { bos_token_id: 'bos_token_id', eos_token_id: 'eos_token_id' }
  const fields = Object.fromEntries(SEARCH_FIELDS.map((name) => [name, name]))
  return { ...rename(model, ids), ...(isObject(search) && rename(search, fields)) }
}

/** Returns the fields that are given, by their new names. */
const rename = (source: Json, names: Readonly<Record<string, string>>): Json =>
  Object.fromEntries(
    Object.entries(names).flatMap(([from, to]) => {
      const value = source[from]
      return value === undefined || value === null ? [] : [[to, value]]
    }),
  )
