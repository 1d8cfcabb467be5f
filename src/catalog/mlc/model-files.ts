/** Knows the file layout of models that MLC compiled. */
import * as v from 'valibot'
import type { ResourceType } from '../../types/index.ts'
import { isTokenCount } from '../hub/variants.ts'
import { pathSchema } from '../value-schemas.ts'

export const CONFIG_FILE = 'mlc-chat-config.json'

/** Name of the file that maps tasks to functions of a library, if they differ from the defaults. */
export const MANIFEST_FILE = 'mlc-model-manifest.json'

/** File names of the list of weights, newest first. */
export const WEIGHT_LIST_FILES = ['tensor-cache.json', 'ndarray-cache.json']

/** Names of the tokenizer's files, in the order of the listing. */
export const TOKENIZER_FILES = ['tokenizer.json', 'tokenizer_config.json', 'chat_template.jinja']

export function toMlcResourceType(name: string): ResourceType {
  if (name === CONFIG_FILE || name === MANIFEST_FILE) return 'config'
  return TOKENIZER_FILES.includes(name) ? 'tokenizer' : 'mlc'
}

/** Default limit of tokens, since memory is allocated for all of them. Catalogs may set more. */
export const DEFAULT_MAX_TOKENS = 4_096

const listSchema = v.object({
  records: v.array(
    v.object({
      dataPath: pathSchema,
      nbytes: v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(0))),
    }),
  ),
})

/**
 * Returns the files in a list of weights, without a length that the list does not give; `null` if it
 * is not such a list.
 */
export function parseShards(list: unknown) {
  const { success, output } = v.safeParse(listSchema, list)
  if (!success) return null
  const lengths = new Map(output.records.map(({ dataPath, nbytes }) => [dataPath, nbytes]))
  return Array.from(lengths, ([path, bytes]) => ({ path, bytes }))
}

/** Returns the context length in tokens from MLC's configuration or its overrides. */
export const findMlcContextTokens = (chat: Readonly<Record<string, unknown>>): number | undefined =>
  [chat['context_window_size'], chat['sliding_window_size']].find(isTokenCount)

/** Returns the WebGPU features that weights of that name require, such as `q4f16_1`. */
export const toRequiredFeatures = (name: string): string[] =>
  /q\d+f16(?![0-9])/i.test(name) ? ['shader-f16'] : []
