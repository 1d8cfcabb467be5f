/** Reads the context length of a model from its configuration. */

/** Maximum context length to accept. No model has more, and memory is allocated for it. */
export const MOST_TOKENS = 2 ** 24

/** Names of the context length in the configurations of model families. */
const NAMES = ['max_position_embeddings', 'n_positions', 'max_seq_len', 'n_ctx', 'seq_length']

/** Returns the tokens of prompt and output together from config.json; `undefined` if not given. */
export function contextOf(config: Readonly<Record<string, unknown>>): number | undefined {
  const parts = [config['text_config'], config['llm_config'], config].filter(isObject)
  return NAMES.flatMap((name) => parts.map((part) => part[name])).find(isCount)
}

/** Returns `true` for a plausible count. Larger values than any model has are ignored. */
const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) > 0 && Number(value) <= MOST_TOKENS

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null
