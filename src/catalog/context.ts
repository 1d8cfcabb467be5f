/** How many tokens a model was made for. */

/** More tokens than any model has; memory is laid out for as many as are promised. */
export const MOST_TOKENS = 2 ** 24

/** Names that families of models have for it. */
const NAMES = ['max_position_embeddings', 'n_positions', 'max_seq_len', 'n_ctx', 'seq_length']

/** Tokens of prompt and answer together, by a model's config.json; `undefined` where it is silent. */
export function contextOf(config: Readonly<Record<string, unknown>>): number | undefined {
  const parts = [config['text_config'], config['llm_config'], config].filter(isObject)
  return NAMES.flatMap((name) => parts.map((part) => part[name])).find(isCount)
}

/** What is more than any model has is not believed. */
const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) > 0 && Number(value) <= MOST_TOKENS

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null
