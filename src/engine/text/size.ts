/**
 * Estimates the least number of tokens of a prompt quickly. Tokenizing a huge prompt takes seconds.
 */
import { InoriginError } from '../../error.ts'
import type { ChatMessage } from '../../types/index.ts'
import type { Conversation } from '../engine.ts'
import { BYTES } from './decoding.ts'
import type { AddedToken, TokenizerFile } from './file.ts'

/**
 * Largest factor by which text may shrink before tokenization, if the tokenizer may drop
 * characters.
 */
const SLACK = 8

/** Pre-tokenizers that keep all characters. */
const KEEPING = new Set(['Sequence', 'ByteLevel', 'Split', 'Digits', 'Metaspace'])

/** Lower bounds on the number of tokens. */
export interface Size {
  /** Returns the least number of tokens of a normalized text. */
  text(normalised: string): number
  /**
   * Returns lower bounds for a conversation. `likely` holds if the template leaves nothing out.
   * `least` holds even if the template leaves most of it out.
   */
  conversation(conversation: Conversation): { least: number; likely: number }
}

/** Creates the bounds of a tokenizer. `rest` are the added tokens that text may become. */
export function createSize(file: TokenizerFile, config: object, rest: readonly AddedToken[]): Size {
  const longest = longestPiece(file, rest)
  const most = keepsCharacters(file, config, rest) ? longest : longest * SLACK
  return {
    text: (normalised) => Math.ceil(normalised.length / most),
    conversation: (conversation) => {
      const { messages } = conversation
      // Templates leave out the reasoning of earlier answers.
      const characters = countCharacters(conversation) - countReasoning(messages)
      const turns = messages.length + countCalls(messages)
      const likely = Math.max(turns, Math.ceil(characters / longest))
      return { likely, least: Math.ceil(likely / SLACK) }
    },
  }
}

/**
 * Returns the error for a prompt that is too long. With `exact`, `tokens` is the exact count;
 * otherwise it is a lower bound.
 */
export function tooLong(tokens: number, most: number, exact: boolean): InoriginError {
  return new InoriginError(
    'invalid_request',
    // Clients look for these words and numbers, and for "exceeds the context window".
    `prompt is too long: ${tokens} tokens > ${most} maximum. The prompt ` +
      `${exact ? '' : 'has at least that many tokens and '}exceeds the context window; ` +
      'shorten the conversation.',
    { code: 'context_length_exceeded', param: 'messages' },
  )
}

/** Returns the number of UTF-16 units in a conversation, with tools and reasoning. */
export function countCharacters({ messages, tools = [], begun }: Conversation): number {
  let count = countReasoning(messages) + (begun?.text.length ?? 0)
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

const countCalls = (messages: readonly ChatMessage[]): number =>
  messages.reduce(
    (sum, message) => sum + (message.role === 'assistant' ? (message.toolCalls?.length ?? 0) : 0),
    0,
  )

const countReasoning = (messages: readonly ChatMessage[]): number =>
  messages.reduce(
    (sum, message) => sum + (message.role === 'assistant' ? (message.reasoning ?? '').length : 0),
    0,
  )

/**
 * Returns the length of the longest token in UTF-16 units. A token written in bytes has at least as
 * many units as its text.
 */
function longestPiece({ model }: TokenizerFile, rest: readonly AddedToken[]): number {
  let longest = 1
  for (const { content } of rest) longest = Math.max(longest, content.length)
  const pieces = Array.isArray(model.vocab)
    ? model.vocab.map(([piece]) => piece)
    : Object.keys(model.vocab)
  for (const piece of pieces) longest = Math.max(longest, piece.length)
  return longest
}

/** Returns `true` if every character of a normalized text is kept in the tokens. */
function keepsCharacters(
  { model, pre_tokenizer: steps, normalizer }: TokenizerFile,
  config: object,
  rest: readonly AddedToken[],
): boolean {
  const json = JSON.stringify(steps ?? null)
  const types = [...json.matchAll(/"type":"(\w+)"/g)].map(([, type]) => type ?? '')
  return (
    types.every((type) => KEEPING.has(type)) &&
    !/"behavior":"removed"|"invert":true/i.test(json) &&
    // Added tokens split a text, and the normalizer strips each part.
    !JSON.stringify(normalizer ?? null).includes('"type":"Strip"') &&
    !rest.some(({ lstrip, rstrip }) => lstrip === true || rstrip === true) &&
    !/"(remove_space|do_lowercase_and_remove_accent)":true/.test(JSON.stringify(config)) &&
    knowsBytes(model, types.includes('ByteLevel'))
  )
}

/**
 * Returns `true` if the vocabulary covers all bytes. Otherwise several unknown characters may
 * become one token.
 */
function knowsBytes(model: TokenizerFile['model'], level: boolean): boolean {
  const { type, vocab, byte_fallback: fallback } = model
  if (type !== 'BPE' || Array.isArray(vocab)) return false
  if (level) return [...BYTES.keys()].every((piece) => piece in vocab)
  return (
    fallback === true &&
    [...BYTES.values()].every(
      (byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>` in vocab,
    )
  )
}
