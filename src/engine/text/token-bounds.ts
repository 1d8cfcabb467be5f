/** Estimates the least number of tokens of a prompt, since tokenizing a huge one takes seconds. */
import { InoriginError } from '../../error.ts'
import type { ChatMessage } from '../../types/index.ts'
import type { Conversation } from '../engine.ts'
import { type AddedToken, BYTES, type TokenizerFile } from './vocabulary.ts'

/** Largest factor by which text may shrink, if the tokenizer may drop characters. */
const MAX_SHRINK_FACTOR = 8

/** Pre-tokenizers that keep all characters. */
const LOSSLESS_PRE_TOKENIZERS = new Set(['Sequence', 'ByteLevel', 'Split', 'Digits', 'Metaspace'])

/** Returns lower bounds on numbers of tokens. Text may become one of `textTokens`. */
export function createTokenBounds(
  file: TokenizerFile,
  config: object,
  textTokens: readonly AddedToken[],
) {
  const longest = findLongestToken(file, textTokens)
  const most = keepsCharacters(file, config, textTokens) ? longest : longest * MAX_SHRINK_FACTOR
  return {
    /** Returns the least number of tokens of a normalized text. */
    text: (normalized: string): number => Math.ceil(normalized.length / most),
    /**
     * Returns lower bounds for a conversation. `likely` holds if the template leaves nothing out.
     * `least` holds even if the template leaves most of it out.
     */
    conversation: (conversation: Conversation) => {
      const { messages } = conversation
      // Templates leave out the reasoning of earlier answers.
      const characters = countCharacters(conversation) - countAll(messages, 'reasoning')
      const messageCount = messages.length + countAll(messages, 'toolCalls')
      const likely = Math.max(messageCount, Math.ceil(characters / longest))
      return { likely, least: Math.ceil(likely / MAX_SHRINK_FACTOR) }
    },
  }
}

/** Numbers of tokens of the parts of a prompt. */
export interface PromptParts {
  tools: number
  /** Instructions, in system messages and for a format of the answer. */
  system: number
  /** All other messages, with their images. */
  history: number
}

/**
 * Returns the error for a prompt that is too long. Unless `isExact`, `tokens` is a lower bound, and
 * the parts are estimated. Parts that are not known yet are left out.
 */
export function promptTooLong(
  tokens: number,
  maximum: number,
  { isExact, parts }: { isExact: boolean; parts?: PromptParts },
): InoriginError {
  // Clients look for these words and numbers, and for "exceeds the context window".
  const what =
    `prompt is too long: ${tokens} tokens > ${maximum} maximum. The prompt ` +
    `${isExact ? '' : 'has at least that many tokens and '}exceeds the context window; `
  const todo = parts
    ? `${describeParts(parts, isExact)}. Send fewer or shorter ones.`
    : 'shorten the conversation.'
  return new InoriginError('invalid_request', what + todo, {
    code: 'context_length_exceeded',
    param: 'messages',
    details: { tokens, maximum, ...(parts && { parts }) },
  })
}

function describeParts({ tools, system, history }: PromptParts, isExact: boolean): string {
  const about = isExact ? '' : 'about '
  return (
    `its tools take ${about}${tools} tokens, its system text ${about}${system}, ` +
    `and its history ${about}${history}`
  )
}

/** Returns the number of UTF-16 units in a conversation, with tools and reasoning. */
export function countCharacters({ messages, tools = [], responsePrefix }: Conversation): number {
  let count = countAll(messages, 'reasoning') + (responsePrefix?.text.length ?? 0)
  for (const message of messages) {
    count += message.content.length
    if (message.role !== 'assistant') continue
    for (const call of message.toolCalls ?? []) count += call.name.length + call.arguments.length
  }
  for (const { name, description = '', parameters } of tools) {
    count += name.length + description.length + JSON.stringify(parameters).length
  }
  return count
}

/** Returns the total length of a field of the answers, such as the number of calls. */
const countAll = (messages: readonly ChatMessage[], field: 'toolCalls' | 'reasoning'): number =>
  messages.reduce(
    (sum, message) => sum + (message.role === 'assistant' ? (message[field]?.length ?? 0) : 0),
    0,
  )

/** Returns the length of the longest token. Written in bytes, it is no shorter than its text. */
function findLongestToken({ model }: TokenizerFile, textTokens: readonly AddedToken[]): number {
  const { vocab } = model
  const pieces = Array.isArray(vocab) ? vocab.map(([piece]) => piece) : Object.keys(vocab)
  let longest = 1
  for (const { content } of textTokens) longest = Math.max(longest, content.length)
  for (const piece of pieces) longest = Math.max(longest, piece.length)
  return longest
}

/** Returns `true` if every character of a normalized text is kept in the tokens. */
function keepsCharacters(
  { model, pre_tokenizer: steps, normalizer }: TokenizerFile,
  config: object,
  textTokens: readonly AddedToken[],
): boolean {
  const json = JSON.stringify(steps ?? null)
  const types = [...json.matchAll(/"type":"(\w+)"/g)].map(([, type]) => type ?? '')
  return (
    types.every((type) => LOSSLESS_PRE_TOKENIZERS.has(type)) &&
    !/"behavior":"removed"|"invert":true/i.test(json) &&
    // Added tokens split a text, and the normalizer strips each part.
    !JSON.stringify(normalizer ?? null).includes('"type":"Strip"') &&
    !textTokens.some(({ lstrip, rstrip }) => lstrip === true || rstrip === true) &&
    !/"(remove_space|do_lowercase_and_remove_accent)":true/.test(JSON.stringify(config)) &&
    coversAllBytes(model, types.includes('ByteLevel'))
  )
}

/** Returns `true` if the vocabulary covers all bytes, so that no token has several characters. */
function coversAllBytes(model: TokenizerFile['model'], isByteLevel: boolean): boolean {
  const { type, vocab, byte_fallback: fallback } = model
  if (type !== 'BPE' || Array.isArray(vocab)) return false
  if (isByteLevel) return [...BYTES.keys()].every((piece) => piece in vocab)
  return (
    fallback === true &&
    [...BYTES.values()].every(
      (byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>` in vocab,
    )
  )
}
