/** Reads how an encoder-decoder writes its texts, as `generation_config.json` and `config.json` say. */
import type { TextDecoderLayout, TokenRules } from '../../catalog/decoder-schema.ts'
import type { PredictorEntry } from '../../catalog/schema.ts'
import { isObject } from '../../values/objects.ts'
import { type Config, positive, type TaskFiles } from './files.ts'

type Inputs = PredictorEntry['signature']['inputs']

/** Part of a decoder that its configuration tells. */
export interface Generation {
  layout: Omit<TextDecoderLayout, 'output' | 'encoder' | 'graph' | 'nextGraph' | 'tokenizer'>
  /** Optional inputs that change how a text is written. */
  inputs: Inputs
  notes: string[]
}

/** Maximum length in `GenerationConfig`, which stands for none. */
const NO_MAX_LENGTH = 20

const TASK = 'task'
const SOURCE = 'src_lang'
const TARGET = 'tgt_lang'
const MAX_TOKENS = 'max_new_tokens'

/** Returns what the files say. Tokens that a text is written from are `null` if no file has them. */
export function readGeneration(files: TaskFiles): Generation | null {
  const { config } = files
  const isAlone = Object.keys(files.generation).length === 0
  const stated = isAlone ? config : files.generation
  const [start] = [
    stated['decoder_start_token_id'],
    config['decoder_start_token_id'],
    stated['bos_token_id'],
  ].filter(isToken)
  if (start === undefined) return null
  const rules = readRules(stated)
  const base = {
    start: [start],
    end: tokensOf(stated['eos_token_id'] ?? config['eos_token_id']),
    ...rules,
  }
  const notes = noteUnread(stated)
  const speech = readSpeech(stated, config)
  if (speech) return { layout: { ...base, speech }, inputs: speechInputs(speech), notes }
  const { tasks, inputs: taskInputs } = readTasks(config)
  const { languages, inputs: languageInputs } = readLanguages(files, rules.firstToken)
  const maxTokens: Inputs[number] = {
    name: MAX_TOKENS,
    type: 'int32',
    description: 'Maximum number of tokens to write.',
    optional: true,
    range: { min: 1 },
  }
  return {
    layout: {
      ...base,
      maxTokensInput: MAX_TOKENS,
      ...(tasks && { tasks }),
      ...(languages && { languages }),
    },
    inputs: [...taskInputs, ...languageInputs, maxTokens],
    notes,
  }
}

const isToken = (value: unknown): value is number => Number.isInteger(value) && Number(value) >= 0

const tokensOf = (value: unknown): number[] => [value].flat().filter(isToken)

/** Returns the rules of a configuration. Its lengths count the token that a text is written from. */
function readRules(stated: Config): TokenRules {
  const length = positive(stated['max_length'])
  const shortest = positive(stated['min_length'])
  const own = length === NO_MAX_LENGTH ? undefined : length
  const maxTokens = positive(stated['max_new_tokens']) ?? (own && own - 1)
  const minTokens = positive(stated['min_new_tokens']) ?? (shortest && shortest - 1)
  const noRepeat = positive(stated['no_repeat_ngram_size'])
  const penalty = positive(stated['repetition_penalty'])
  const [firstToken] = tokensOf(stated['forced_bos_token_id'])
  const [lastToken] = tokensOf(stated['forced_eos_token_id'])
  const suppress = tokensOf(stated['suppress_tokens'])
  const suppressFirst = tokensOf(stated['begin_suppress_tokens'])
  const words: unknown = stated['bad_words_ids']
  const exclude = Array.isArray(words) ? words.map(tokensOf).filter((one) => one.length > 0) : []
  return {
    ...(maxTokens && { maxTokens }),
    ...(minTokens && { minTokens }),
    ...(noRepeat && { noRepeat }),
    ...(penalty !== undefined && penalty !== 1 && { repetitionPenalty: penalty }),
    ...(firstToken !== undefined && { firstToken }),
    ...(lastToken !== undefined && { lastToken }),
    ...(suppress.length > 0 && { suppress }),
    ...(suppressFirst.length > 0 && { suppressFirst }),
    ...(exclude.length > 0 && { exclude }),
  }
}

/** Returns the tasks of `task_specific_params`, such as `summarization` with its prefix. */
function readTasks({ task_specific_params: params }: Config): {
  tasks?: TextDecoderLayout['tasks']
  inputs: Inputs
} {
  const entries = Object.entries(isObject(params) ? params : {}).flatMap(([name, own]) =>
    isObject(own) ? [[name, own] as const] : [],
  )
  if (entries.length === 0) return { inputs: [] }
  const named = entries.map(([name, own]) => {
    const { prefix } = own
    return [name, { ...(typeof prefix === 'string' && { prefix }), ...readRules(own) }] as const
  })
  const input: Inputs[number] = {
    name: TASK,
    type: 'string',
    description: 'A task, with its prefix and its lengths.',
    optional: true,
    enumeration: entries.map(([name]) => ({ name, value: name })),
  }
  return { tasks: { input: TASK, named: Object.fromEntries(named) }, inputs: [input] }
}

/** Forms of the tokens of languages: NLLB, M2M100 and mBART. */
const LANGUAGE_TOKENS = [
  { form: /^([a-z]{3}_[A-Z][a-z]{3})$/, token: '{}' },
  { form: /^__([a-z]{2,3})__$/, token: '__{}__' },
  { form: /^([a-z]{2}_[A-Z]{2})$/, token: '{}' },
]

/** Fewest tokens of a form that are languages. */
const MIN_LANGUAGES = 2

/** Returns the languages that the tokenizer has tokens of. */
function readLanguages(
  { tokenizer, addedTokens }: TaskFiles,
  firstToken: number | undefined,
): { languages?: NonNullable<TextDecoderLayout['languages']>; inputs: Inputs } {
  for (const { form, token } of LANGUAGE_TOKENS) {
    const found = addedTokens.flatMap(({ content, id }) => {
      const [, name] = form.exec(content) ?? []
      return name === undefined ? [] : [{ name, id }]
    })
    if (found.length < MIN_LANGUAGES) continue
    const names = found.map(({ name }) => name)
    const forced = found.find(({ id }) => id !== undefined && id === firstToken)?.name
    const parameterOf = (name: string, stated: unknown, description: string): Inputs[number] => {
      const known = typeof stated === 'string' && names.includes(stated)
      return {
        name,
        type: 'string',
        description: `${description}, such as ${names[0]}.`,
        ...(known && { optional: true, defaultValue: stated }),
      }
    }
    return {
      languages: { source: SOURCE, target: TARGET, names, ...(token !== '{}' && { token }) },
      inputs: [
        parameterOf(SOURCE, tokenizer['src_lang'], 'Language of the text'),
        parameterOf(TARGET, tokenizer['tgt_lang'] ?? forced, 'Language to translate to'),
      ],
    }
  }
  return { inputs: [] }
}

type Speech = NonNullable<TextDecoderLayout['speech']>

/** Returns the tokens of a model of speech; `null` if the model is none. */
function readSpeech(stated: Config, config: Config): Speech | null {
  const noTimestamps = stated['no_timestamps_token_id']
  if (!isToken(noTimestamps)) return null
  const languages = Object.entries(readTokens(stated['lang_to_id'])).map(
    ([name, token]) => [name.replaceAll(/[<|>]/g, ''), token] as const,
  )
  const { transcribe, translate } = readTokens(stated['task_to_id'])
  const maxInitial = stated['max_initial_timestamp_index']
  const positions = positive(config['max_target_positions'])
  const alignment = readHeads(stated['alignment_heads'])
  return {
    ...(languages.length > 0 && { languages: Object.fromEntries(languages) }),
    ...(transcribe !== undefined &&
      translate !== undefined && { tasks: { transcribe, translate } }),
    noTimestamps,
    ...(positions && { positions }),
    ...(isToken(maxInitial) && { maxInitialTimestamp: maxInitial }),
    ...(alignment.length > 0 && { alignment }),
  }
}

/** Returns the heads of a list, each as its layer and its number. */
const readHeads = (value: unknown): [layer: number, head: number][] =>
  (Array.isArray(value) ? value : []).flatMap((one: unknown): [number, number][] => {
    const [layer, head]: unknown[] = Array.isArray(one) ? one : []
    return isToken(layer) && isToken(head) ? [[layer, head]] : []
  })

const readTokens = (value: unknown): Record<string, number> =>
  Object.fromEntries(
    Object.entries(isObject(value) ? value : {}).flatMap(([name, token]) =>
      isToken(token) ? [[name, token] as const] : [],
    ),
  )

function speechInputs({ tasks }: Speech): Inputs {
  const names = tasks ? Object.keys(tasks) : ['transcribe']
  return [
    {
      name: 'language',
      type: 'string',
      description: 'Code of the language, such as en. Default: the one that is heard.',
      optional: true,
    },
    {
      name: 'task',
      type: 'string',
      description: 'Whether to write the language of the speech, or English.',
      optional: true,
      enumeration: names.map((name) => ({ name, value: name })),
      defaultValue: 'transcribe',
    },
    {
      name: 'return_timestamps',
      type: 'bool',
      description: 'Whether to return the parts of the text with their times.',
      optional: true,
      defaultValue: false,
    },
  ]
}

/** Settings of `generate()` that change texts and are not read, with the values that change nothing. */
const UNREAD: Readonly<Record<string, readonly unknown[]>> = {
  do_sample: [false],
  encoder_no_repeat_ngram_size: [0],
  encoder_repetition_penalty: [1],
  exponential_decay_length_penalty: [],
  guidance_scale: [1],
  sequence_bias: [],
}

function noteUnread(stated: Config): string[] {
  const unread = Object.entries(UNREAD)
    .filter(([name, idle]) => (stated[name] ?? null) !== null && !idle.includes(stated[name]))
    .map(([name]) => name)
  const beams = positive(stated['num_beams']) ?? 1
  return [
    ...(beams > 1
      ? [
          `generation_config.json asks for ${beams} beams. A text is written with one, as with ` +
            'num_beams=1: it takes the best token each time.',
        ]
      : []),
    ...(unread.length > 0
      ? [`generation_config.json has ${unread.join(', ')}, which is not supported.`]
      : []),
  ]
}
