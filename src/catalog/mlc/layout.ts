/** How a model that MLC compiled lies in its folder. */
import * as v from 'valibot'
import type { ResourceType } from '../../types/index.ts'
import { MOST_TOKENS } from '../context.ts'
import { path } from '../values.ts'

/** The file that says of a model what MLC knows. */
export const CONFIG = 'mlc-chat-config.json'

/** Says which functions of a library do what, where it does not go without saying. */
export const MANIFEST = 'mlc-model-manifest.json'

/** Names that lists of weights have had, the newest first. */
export const LISTS = ['tensor-cache.json', 'ndarray-cache.json']

/** Files of which texts are made, in the order in which they are listed. */
export const TOKENIZERS = ['tokenizer.json', 'tokenizer_config.json', 'chat_template.jinja']

/** What a file of that name is. */
export function typeOf(name: string): ResourceType {
  if (name === CONFIG || name === MANIFEST) return 'config'
  return TOKENIZERS.includes(name) ? 'tokenizer' : 'mlc'
}

/** Memory is laid out for every token that is promised; more than this is for a catalog to promise. */
export const MOST_PROMISED = 4_096

const listSchema = v.object({
  records: v.array(
    v.object({
      dataPath: path,
      nbytes: v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(0))),
    }),
  ),
})

/** A file of weights. */
export interface Shard {
  path: string
  /** Where the list says it. */
  bytes: number | undefined
}

/** The files that a list of weights names; `null` where it is no such list. */
export function shardsOf(list: unknown): Shard[] | null {
  const { success, output } = v.safeParse(listSchema, list)
  if (!success) return null
  const bytes = new Map(output.records.map(({ dataPath, nbytes }) => [dataPath, nbytes]))
  return Array.from(bytes, ([name, length]) => ({ path: name, bytes: length }))
}

/** Tokens of context that MLC's own file, or what replaces parts of it, tells of. */
export function tokensOf(chat: Readonly<Record<string, unknown>>): number | undefined {
  return [chat['context_window_size'], chat['sliding_window_size']].find(
    (length): length is number =>
      Number.isSafeInteger(length) && Number(length) > 0 && Number(length) <= MOST_TOKENS,
  )
}

/** WebGPU features that weights need which are named so, such as `q4f16_1`. */
export function featuresOf(name: string): string[] {
  return /q\d+f16(?![0-9])/i.test(name) ? ['shader-f16'] : []
}
