/** How many tokens a prompt has at least, told in a moment: tokenising a huge one takes seconds. */
import { InoriginError } from '../../error.ts'
import type { ChatMessage } from '../../types/index.ts'
import type { Conversation } from '../engine.ts'
import { BYTES } from './decoding.ts'
import type { AddedToken, TokenizerFile } from './file.ts'

/** By how much text may shrink on its way to the tokens, where that is not certain. */
const SLACK = 8

/** Steps before the model that leave all characters where they are. */
const KEEPING = new Set(['Sequence', 'ByteLevel', 'Split', 'Digits', 'Metaspace'])

export interface Size {
  /** Fewest tokens that a normalised text can have. */
  text(normalised: string): number
  /**
   * Tokens of a conversation whose template leaves nothing out are no fewer than `likely`; `least`
   * holds though most of it be left out.
   */
  conversation(conversation: Conversation): { least: number; likely: number }
}

/** `rest` are the added tokens that text may become. */
export function createSize(file: TokenizerFile, config: object, rest: readonly AddedToken[]): Size {
  const longest = longestPiece(file, rest)
  const most = keepsCharacters(file, config, rest) ? longest : longest * SLACK
  return {
    text: (normalised) => Math.ceil(normalised.length / most),
    conversation: (conversation) => {
      const { messages } = conversation
      // Templates forget what was reasoned for earlier answers.
      const characters = countCharacters(conversation) - countReasoning(messages)
      const turns = messages.length + countCalls(messages)
      const likely = Math.max(turns, Math.ceil(characters / longest))
      return { likely, least: Math.ceil(likely / SLACK) }
    },
  }
}

/** `exact`: whether `tokens` is the count, or only the least that it can be. */
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

/** Of all that the conversation holds, in UTF-16 units. */
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

/** In UTF-16 units. A piece written in bytes has no fewer of them than its text has units. */
function longestPiece({ model }: TokenizerFile, rest: readonly AddedToken[]): number {
  let longest = 1
  for (const { content } of rest) longest = Math.max(longest, content.length)
  const pieces = Array.isArray(model.vocab)
    ? model.vocab.map(([piece]) => piece)
    : Object.keys(model.vocab)
  for (const piece of pieces) longest = Math.max(longest, piece.length)
  return longest
}

/** Whether every character of a normalised text ends up in a piece of the vocabulary. */
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
    // Added tokens cut a text, and each part is stripped.
    !JSON.stringify(normalizer ?? null).includes('"type":"Strip"') &&
    !rest.some(({ lstrip, rstrip }) => lstrip === true || rstrip === true) &&
    !/"(remove_space|do_lowercase_and_remove_accent)":true/.test(JSON.stringify(config)) &&
    knowsBytes(model, types.includes('ByteLevel'))
  )
}

/** Unknown characters in a row can be one token, so there must be none. */
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
