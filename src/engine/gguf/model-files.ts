/** Writes the files that other models bring for the metadata of a GGUF file. */
import type { Files } from '../engine.ts'
import { parseTemplate } from '../text/chat-template.ts'
import { type Metadata, readGguf, toByteSource } from './header.ts'
import { findNumber, findNumbers, findText, findTexts, wrongValue } from './metadata.ts'
import { type GgufTokenizer, readTokenizer } from './tokenizer.ts'

/**
 * Returns the texts of config.json, generation_config.json, tokenizer.json and
 * tokenizer_config.json by these names, which say about the model what the metadata says. Throws
 * `model_unusable` if the metadata is wrong; the message names the key.
 */
export function toModelFiles(metadata: Metadata): ReadonlyMap<string, string> {
  const tokenizer = readTokenizer(metadata)
  const contents = {
    'config.json': toConfig(metadata),
    'generation_config.json': toGenerationConfig(metadata, tokenizer),
    'tokenizer.json': tokenizer.file,
    'tokenizer_config.json': {
      ...tokenizer.tokenNames,
      ...toChatTemplate(metadata, tokenizer),
      clean_up_tokenization_spaces: false,
    },
  }
  return new Map(Object.entries(contents).map(([name, value]) => [name, JSON.stringify(value)]))
}

/**
 * Resolves with the files of configuration and tokenizer; the same ones if they have any. Those of a
 * GGUF file, or of the first part of one, are made from its head. Rejects as {@link toModelFiles}.
 */
export async function withModelFiles(files: Files): Promise<Files> {
  const [first] = [...files.keys()].filter((name) => name.endsWith('.gguf')).toSorted()
  const file = files.get(first ?? '')
  if (!file || files.has('config.json')) return files
  const { metadata } = await readGguf(toByteSource(file))
  return new Map(Array.from(toModelFiles(metadata), ([name, text]) => [name, new Blob([text])]))
}

/** Returns the sizes that the engine reads, in the words of config.json. */
function toConfig(metadata: Metadata): object {
  const architecture = findText(metadata, 'general.architecture')
  if (architecture === undefined) throw wrongValue('general.architecture', 'is missing')
  const count = (name: string): number | undefined => {
    const key = `${architecture}.${name}`
    const value = findCount(metadata, key)
    if (value === undefined || (Number.isSafeInteger(value) && value > 0)) return value
    throw wrongValue(key, `must be a positive integer, got ${value}`)
  }
  const heads = count('attention.head_count')
  return {
    max_position_embeddings: count('context_length'),
    hidden_size: count('embedding_length'),
    num_attention_heads: heads,
    num_key_value_heads: count('attention.head_count_kv') ?? heads,
    head_dim: count('attention.key_length'),
  }
}

/** Returns a number; of a number for each layer, the greatest, because some layers have no heads. */
function findCount(metadata: Metadata, key: string): number | undefined {
  if (!ArrayBuffer.isView(metadata.get(key))) return findNumber(metadata, key)
  return Array.from(findNumbers(metadata, key) ?? []).reduce(
    (most, each) => Math.max(most, each),
    0,
  )
}

/** Names of sampling defaults in generation_config.json by those in GGUF files. */
const SAMPLING = {
  temp: 'temperature',
  top_p: 'top_p',
  top_k: 'top_k',
  min_p: 'min_p',
  penalty_repeat: 'repetition_penalty',
}

function toGenerationConfig(metadata: Metadata, { endTokens }: GgufTokenizer): object {
  const sampling = Object.entries(SAMPLING).map(([name, field]) => [
    field,
    findNumber(metadata, `general.sampling.${name}`),
  ])
  const suppressed = findNumbers(metadata, 'tokenizer.ggml.suppress_tokens')
  return {
    ...(Object.fromEntries(sampling) as object),
    eos_token_id: endTokens,
    ...(suppressed && { suppress_tokens: Array.from(suppressed) }),
  }
}

/** Returns the chat template, with its named variants if it has any; nothing if there is none. */
function toChatTemplate(metadata: Metadata, tokenizer: GgufTokenizer): object {
  const key = 'tokenizer.chat_template'
  const named = (findTexts(metadata, 'tokenizer.chat_templates') ?? []).map(
    (name) => [name, findText(metadata, `${key}.${name}`)] as const,
  )
  const all = [['default', findText(metadata, key)] as const, ...named].flatMap(([name, source]) =>
    !source ? [] : [{ name, template: withBos(source, tokenizer) }],
  )
  const [first, ...others] = all
  if (!first) return {}
  return { chat_template: others.length > 0 ? all : first.template }
}

/** Returns the template, which begins with the BOS token if every prompt of the model does. */
function withBos(source: string, { addsBos, tokenNames }: GgufTokenizer): string {
  const { bos_token: bos } = tokenNames
  if (!addsBos || bos === undefined) return source
  try {
    const messages = [{ role: 'user' as const, content: 'Hi' }]
    const { text } = parseTemplate(source, tokenNames).render({ messages })
    return text.startsWith(bos) ? source : `{{ bos_token }}${source}`
  } catch {
    // The engine reports what is wrong with the template when it reads it.
    return source
  }
}
