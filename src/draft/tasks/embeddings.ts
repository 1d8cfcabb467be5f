/** Drafts encoders of texts as models of `/v1/embeddings`. */
import type { PredictorEntry, Step } from '../../catalog/schema.ts'
import type { OnnxModel, Value } from '../model.ts'
import { refuse } from '../refuse.ts'
import { type Config, positive, type TaskFiles } from './files.ts'
import { type TaskDraft, withOutput } from './task-draft.ts'

type Pool = Extract<Step, { step: 'pool' }>['by']

const OUTPUT = 'embedding'

/** Tensors with one vector for each text, and those with one for each token. */
const TEXT_VECTORS = ['sentence_embedding']
const TOKEN_VECTORS = ['last_hidden_state', 'token_embeddings']

/** Modes of pooling by their keys in the configuration of sentence-transformers. */
const MODES: Readonly<Record<string, Pool>> = {
  pooling_mode_cls_token: 'first',
  pooling_mode_mean_tokens: 'mean',
  pooling_mode_max_tokens: 'max',
  pooling_mode_mean_sqrt_len_tokens: 'mean-sqrt',
  pooling_mode_lasttoken: 'last',
}

/** Names of the same modes in newer files. */
const MODE_NAMES: Readonly<Record<string, Pool>> = {
  cls: 'first',
  mean: 'mean',
  max: 'max',
  mean_sqrt_len_tokens: 'mean-sqrt',
  lasttoken: 'last',
}

/** Parts of an encoder that a graph with vectors of tokens has, or that steps replace. */
const KNOWN_MODULES = ['Transformer', 'Pooling', 'Normalize']

/**
 * Returns the draft of an encoder, with one vector for each text; `null` if the graph is none. Throws
 * `invalid_request` if its vectors cannot be made as sentence-transformers makes them.
 */
export function draftEmbeddings(
  draft: TaskDraft,
  { outputs }: OnnxModel,
  files: TaskFiles,
): TaskDraft | null {
  const layout = draft.bindings['text']?.text
  const find = (names: readonly string[]): Value | undefined =>
    outputs.find(({ name, type }) => names.includes(name) && /^float(16|32)$/.test(type))
  const whole = find(TEXT_VECTORS)
  const value = whole ?? find(TOKEN_VECTORS)
  if (!layout?.mask || !value) return null
  const isOther = ({ name }: { name: string }): boolean => name !== 'text'
  if (draft.signature.inputs.some(isOther)) return null
  const dimensions = sizeOf(value, files)
  const note = 'The vectors have an unknown length, so they are no model of /v1/embeddings.'
  if (dimensions === undefined) return { ...draft, notes: [...draft.notes, note] }
  const { steps, notes } = whole ? { steps: [], notes: [] } : toSteps(files)
  const description = `One vector of ${dimensions} numbers for each text.`
  const drafted = withOutput(
    draft,
    { name: OUTPUT, type: 'float32', description },
    { tensor: value.name, ...(steps.length > 0 && { steps }) },
  )
  const first = drafted.signature.outputs[0]
  if (whole && first) first.type = whole.type === 'float16' ? 'float16' : 'float32'
  return {
    ...drafted,
    embeddings: {
      input: 'text',
      output: OUTPUT,
      dimensions,
      ...(isShortened(files) && { shortens: true }),
      maxInputTokens: layout.most,
      ...toPrompts(files.prompts),
    },
    notes: [...drafted.notes, ...notes],
  }
}

function sizeOf({ name, shape }: Value, { config, modules }: TaskFiles): number | undefined {
  const own = positive(shape?.at(-1))
  if (own !== undefined || TEXT_VECTORS.includes(name)) {
    const dense = modules?.findLast(({ config: one }) => positive(one['out_features']))
    return own ?? positive(dense?.config['out_features']) ?? positive(config['hidden_size'])
  }
  const pooling = modules?.find(({ kind }) => kind === 'Pooling')?.config
  const names = ['hidden_size', 'dim', 'd_model', 'n_embd']
  return (
    positive(pooling?.['word_embedding_dimension']) ??
    names.map((key) => positive(config[key])).find((size) => size !== undefined)
  )
}

/** Returns the steps from vectors of tokens to vectors of texts. */
function toSteps({ modules, pooling }: TaskFiles): { steps: Step[]; notes: string[] } {
  const isPooled = Object.keys(pooling).some((key) => key.startsWith('pooling_mode'))
  if (!modules && isPooled)
    return {
      steps: [{ step: 'pool', by: toPool(pooling) }, { step: 'normalize' }],
      notes: ['The folder has no modules.json, so vectors are scaled to the length 1.'],
    }
  if (!modules)
    return {
      steps: [{ step: 'pool', by: 'mean' }, { step: 'normalize' }],
      notes: [
        'The folder has no modules.json, so a vector is the mean of those of all tokens, scaled to ' +
          'the length 1. If the model was trained otherwise, copy modules.json and 1_Pooling from the ' +
          'original model, or use --step last_hidden_state=pool,by=first --step last_hidden_state=normalize.',
      ],
    }
  const unknown = modules.find(({ kind }) => !KNOWN_MODULES.includes(kind))
  if (unknown)
    throw refuse(
      `modules.json lists a part ${unknown.kind}, which the graph does not have.`,
      'Export the model again with `optimum-cli export onnx --library sentence_transformers`.',
    )
  const stated = modules.find(({ kind }) => kind === 'Pooling')
  const isNormalized = modules.some(({ kind }) => kind === 'Normalize')
  return {
    steps: [
      { step: 'pool', by: stated ? toPool(stated.config) : 'mean' },
      ...(isNormalized ? [{ step: 'normalize' } as const] : []),
    ],
    notes: [],
  }
}

function toPool(config: Config): Pool {
  const named = config['pooling_mode']
  const modes =
    typeof named === 'string'
      ? [named]
      : Object.keys(config).filter((key) => key.startsWith('pooling_mode_') && config[key] === true)
  const [mode = 'mean', ...others] = modes
  const pool = MODE_NAMES[mode] ?? MODES[mode]
  const expected = Object.keys(MODES).join(', ')
  if (pool && others.length === 0 && config['include_prompt'] !== false) return pool
  const what = others.length > 0 ? modes.join(' with ') : pool ? 'include_prompt: false' : mode
  throw refuse(
    `The configuration of the pooling asks for ${what}, which is not supported.`,
    `Supported is one of ${expected}. Export the model again with ` +
      '`optimum-cli export onnx --library sentence_transformers`.',
  )
}

/** Returns `true` if the first part of a vector is a usable vector, too. */
const isShortened = ({ config, prompts }: TaskFiles): boolean =>
  config['is_matryoshka'] === true ||
  (Array.isArray(config['matryoshka_dimensions']) && config['matryoshka_dimensions'].length > 0) ||
  positive(prompts['truncate_dim']) !== undefined

type Prompts = Pick<NonNullable<PredictorEntry['embeddings']>, 'prompts' | 'defaultPrompt'>

function toPrompts({ prompts, default_prompt_name: name }: Config): Prompts {
  const texts = Object.entries(Object(prompts) as Record<string, unknown>).filter(
    (entry): entry is [string, string] => entry[0] !== '' && typeof entry[1] === 'string',
  )
  if (texts.length === 0) return {}
  const isKnown = typeof name === 'string' && texts.some(([key]) => key === name)
  return { prompts: Object.fromEntries(texts), ...(isKnown && { defaultPrompt: name }) }
}
