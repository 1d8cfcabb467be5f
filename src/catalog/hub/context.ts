/** How many tokens a model was made for. */

/** Names that families of models have for it. */
const NAMES = ['max_position_embeddings', 'n_positions', 'max_seq_len', 'n_ctx', 'seq_length']

/** More than any model has: beyond, no configuration is believed. */
const MOST = 2 ** 24

/** Tokens of prompt and answer together, by a model's config.json; `undefined` where it is silent. */
export function contextOf(config: Readonly<Record<string, unknown>>): number | undefined {
  const parts = [config['text_config'], config['llm_config'], config].filter(isObject)
  return NAMES.flatMap((name) => parts.map((part) => part[name])).find(isCount)
}

const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) > 0 && Number(value) <= MOST

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null
