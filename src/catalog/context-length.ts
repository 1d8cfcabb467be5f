/** Reads the context length of a model from its configuration. */
import { isObject } from '../values/objects.ts'

/** Maximum context length to accept. No model has more, and memory is allocated for it. */
export const MAX_CONTEXT_TOKENS = 2 ** 24

/** Names of the context length in the configurations of model families. */
const CONTEXT_FIELDS = [
  'max_position_embeddings',
  'n_positions',
  'max_seq_len',
  'n_ctx',
  'seq_length',
]

/** Returns the tokens of prompt and output together from config.json; `undefined` if not given. */
export function findContextTokens(config: Readonly<Record<string, unknown>>): number | undefined {
  const parts = [config['text_config'], config['llm_config'], config].filter(isObject)
  return CONTEXT_FIELDS.flatMap((name) => parts.map((part) => part[name])).find(isTokenCount)
}

/** Returns `true` for a plausible count. Larger values than any model has are ignored. */
export const isTokenCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) > 0 && Number(value) <= MAX_CONTEXT_TOKENS
