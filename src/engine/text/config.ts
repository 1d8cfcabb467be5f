/** Reads a model's own configuration and tokenizer files. */
import { findContextTokens } from '../../catalog/hub/variants.ts'
import { InoriginError } from '../../error.ts'
import type { Files } from '../engine.ts'
import { modelUnusable, resourceMissing } from '../failure.ts'
import { isObject } from '../../values/objects.ts'
import type { SamplingDefaults } from '../sampling/sampler.ts'
import type { AddedToken, TokenizerFile } from './vocabulary.ts'

/** Configuration of a model, from its files. */
export interface ModelConfig {
  tokenizer: TokenizerFile
  tokenizerConfig: Record<string, unknown>
  /** Sources of the chat template and of the template for tools, if there is one. */
  templates: { plain: string; tools: string | null }
  /** Texts of special tokens by the names that templates use, such as `bos_token`. */
  tokenNames: Record<string, string>
  /** Ids of the tokens that end an answer. */
  endTokens: ReadonlySet<number>
  /** Context window that the model was trained for: tokens of prompt and answer together. */
  contextWindow: number
  sampling: SamplingDefaults
  /** Number of attention heads, which determines the shape of some KV caches. Absent if unknown. */
  heads?: number
  /** Number of heads of keys and values. Absent if unknown. */
  kvHeads?: number
  /** Size of an attention head. Absent if unknown. */
  headSize?: number
  /** First position id. A few families count from 1. */
  firstPosition: 0 | 1
}

type Json = Record<string, unknown>

/** Reads the configuration files. Rejects with `unavailable` if one is missing or unusable. */
export async function readConfig(files: Files): Promise<ModelConfig> {
  const [config, generation, tokenizer, tokenizerConfig, jinja, templateJson] = await Promise.all([
    readJson(files, 'config.json'),
    files.has('generation_config.json') ? readJson(files, 'generation_config.json') : {},
    readJson(files, 'tokenizer.json'),
    readJson(files, 'tokenizer_config.json'),
    files.get('chat_template.jinja')?.text(),
    files.has('chat_template.json') ? readJson(files, 'chat_template.json') : ({} as Json),
  ])
  const tokenizerFile = toTokenizerFile(tokenizer, tokenizerConfig['added_tokens_decoder'])
  const tokenNames = readTokenNames(tokenizerConfig)
  return {
    tokenizer: tokenizerFile,
    tokenizerConfig,
    templates: readTemplates(
      jinja ?? templateJson['chat_template'] ?? tokenizerConfig['chat_template'],
    ),
    tokenNames,
    endTokens: endTokens(config, generation, tokenizerFile, tokenNames['eos_token']),
    contextWindow: findContextTokens(config) ?? Number.POSITIVE_INFINITY,
    sampling: toSamplingDefaults(generation),
    ...findHeads(config),
    firstPosition: /^(gemma3|gemma3_text|paligemma)$/.test(String(config['model_type'])) ? 1 : 0,
  }
}

/** Reads a JSON object. Rejects with `model_unusable` if the file is missing or invalid. */
export async function readJson(files: Files, name: string): Promise<Json> {
  const file = files.get(name)
  if (!file) throw resourceMissing(name)
  try {
    const value: unknown = JSON.parse(await file.text())
    if (isObject(value)) return value
    throw new Error('is not an object')
  } catch (cause) {
    throw modelUnusable(`${name} cannot be read (${String(cause)}).`, cause)
  }
}

const asRecord = (value: unknown): Json | null => (isObject(value) ? value : null)

/** Adds the tokens of `added_tokens_decoder`, which a few repositories list nowhere else. */
function toTokenizerFile(json: Json, decoder: unknown): TokenizerFile {
  const vocab = asRecord(json['model'])?.['vocab']
  if (typeof vocab !== 'object' || vocab === null)
    throw modelUnusable('tokenizer.json has no vocabulary.')
  const file = { ...json, added_tokens: json['added_tokens'] ?? [] } as TokenizerFile & Json
  const listedIds = new Set(file.added_tokens.map(({ id }) => id))
  const others = Object.entries(asRecord(decoder) ?? {}).flatMap(([id, token]): AddedToken[] => {
    const content = tokenText(token)
    return content === null || listedIds.has(Number(id))
      ? []
      : [{ ...asRecord(token), id: Number(id), content }]
  })
  return { ...file, added_tokens: [...file.added_tokens, ...others] }
}

/** Returns the text of a token, which is written as a string or an object with `content`. */
function tokenText(value: unknown): string | null {
  const text = asRecord(value)?.['content'] ?? value
  return typeof text === 'string' ? text : null
}

/** Returns the texts of special tokens by their names. */
function readTokenNames(tokenizerConfig: Json): Record<string, string> {
  const names = Object.entries(tokenizerConfig).flatMap(([name, value]) => {
    const text = name.endsWith('_token') ? tokenText(value) : null
    return text === null ? [] : [[name, text]]
  })
  return Object.fromEntries(names) as Record<string, string>
}

/** Reads the chat templates from a string or a named list. Throws `no_chat_template` if absent. */
function readTemplates(value: unknown): ModelConfig['templates'] {
  if (typeof value === 'string') return { plain: value, tools: null }
  const named = new Map(
    (Array.isArray(value) ? value.map(asRecord) : []).map((each) => [
      each?.['name'],
      each?.['template'],
    ]),
  )
  const tools = named.get('tool_use')
  const plain = named.get('default') ?? tools
  if (typeof plain === 'string') return { plain, tools: typeof tools === 'string' ? tools : null }
  throw new InoriginError(
    'unavailable',
    'The model cannot chat: it has no chat template, neither in tokenizer_config.json ' +
      'nor as chat_template.jinja.',
    { code: 'no_chat_template' },
  )
}

/** Returns the ids of the end tokens. Throws `model_unusable` if there are none. */
function endTokens(
  config: Json,
  generation: Json,
  tokenizer: TokenizerFile,
  endText: string | undefined,
): ReadonlySet<number> {
  const listed = [
    generation['eos_token_id'] ?? config['eos_token_id'] ?? textConfigOf(config)['eos_token_id'],
  ].flat()
  const named = tokenizer.added_tokens
    .filter(({ content }) => content === endText)
    .map(({ id }) => id)
  const ids = [...listed, ...named].filter((id) => typeof id === 'number')
  if (ids.length === 0) throw modelUnusable('its configuration has no end token (`eos_token_id`).')
  return new Set(ids)
}

/** Returns the numbers of attention heads and their size, as far as they are known. */
function findHeads(config: Json): Pick<ModelConfig, 'heads' | 'kvHeads' | 'headSize'> {
  const text = textConfigOf(config)
  const isCount = (value: unknown): value is number => Number.isInteger(value) && Number(value) > 0
  const sizeOf = (...names: string[]) => names.map((name) => text[name]).find(isCount)
  const heads = sizeOf('num_attention_heads', 'n_head')
  const kvHeads = sizeOf('num_key_value_heads') ?? heads
  const width = sizeOf('hidden_size', 'n_embd')
  const headSize = sizeOf('head_dim') ?? (width && heads && width / heads)
  return {
    ...(heads !== undefined && { heads }),
    ...(kvHeads !== undefined && { kvHeads }),
    ...(headSize !== undefined && Number.isInteger(headSize) && { headSize }),
  }
}

/** Returns the text model's part of a multimodal configuration. */
const textConfigOf = (config: Json): Json =>
  asRecord(config['text_config']) ?? asRecord(config['llm_config']) ?? config

/**
 * Returns the sampling defaults. A configuration that has no temperature and does not enable
 * sampling is greedy. Its penalties and suppressed tokens apply either way.
 */
function toSamplingDefaults(generation: Json): SamplingDefaults {
  const number = (name: string): number | undefined => {
    const value = generation[name]
    return typeof value === 'number' && Number.isFinite(value) ? value : undefined
  }
  const sampled = generation['do_sample'] ?? generation['temperature'] !== undefined
  const repetitionPenalty = number('repetition_penalty') ?? 1
  return {
    temperature: sampled === true ? (number('temperature') ?? 1) : 0,
    topP: number('top_p') ?? 1,
    topK: number('top_k') ?? 0,
    minP: number('min_p') ?? 0,
    repetitionPenalty: repetitionPenalty > 0 ? repetitionPenalty : 1,
    suppress: [generation['suppress_tokens']].flat().filter((id) => typeof id === 'number'),
  }
}
