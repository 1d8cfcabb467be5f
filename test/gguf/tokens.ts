/** Compares the tokens of texts with those of llama.cpp for the same GGUF file. */
import { openAsBlob } from 'node:fs'
import type { Conversation } from '../../src/engine/engine.ts'
import { readGguf, toByteSource } from '../../src/engine/gguf/header.ts'
import { readTokenizer } from '../../src/engine/gguf/tokenizer.ts'
import { isSpecialToken, PromptTokenizer } from '../../src/engine/text/prompt-tokenizer.ts'
import { tokenizeWithLlama } from './llama.ts'
import { createTexts } from './texts.ts'

/** Result for one file. */
export interface TokenComparison {
  /** Kind of the tokenizer, such as `gpt2 smollm`. */
  kind: string
  /** Number of tokens in the vocabulary. */
  size: number
  /** Number of compared texts, in which special tokens count. */
  parsed: number
  /** Number of compared texts, in which special tokens do not count. */
  plain: number
  /** Texts that became other tokens. */
  differences: Difference[]
  /** `true` if the same tokens end an answer, and the BOS token is added or not. */
  hasSameEnds: boolean
}

/** A text that became other tokens than llama.cpp makes of it. */
interface Difference {
  text: string
  ours: readonly number[]
  theirs: readonly number[]
}

/** Resolves with the comparison of `count` texts; with `null` if the file has no tokenizer. */
export async function compareTokens(
  path: string,
  count: number,
  seed: number,
): Promise<TokenComparison | null> {
  const { metadata } = await readGguf(toByteSource(await openAsBlob(path)))
  if (!metadata.has('tokenizer.ggml.model')) return null
  const { file, endTokens, addsBos } = readTokenizer(metadata)
  const specials = file.added_tokens.map(({ content }) => content)
  // Text of a request never becomes a token that looks special, whatever its kind in the file.
  const hidden = file.added_tokens.filter(
    (token) => token.special !== true && isSpecialToken(token, ''),
  )
  const texts = createTexts(count, seed, specials.slice(0, MAX_SPECIALS))
  const theirs = tokenizeWithLlama(path, texts)
  const size = Object.keys(file.model.vocab).length
  const tokenizer = new PromptTokenizer(structuredClone(file), {}, '')
  const differences: Difference[] = []
  const compare = (text: string, ours: readonly number[], other: readonly number[] = []): void => {
    if (ours.join() !== other.join()) differences.push({ text, ours, theirs: other })
  }
  let plain = 0
  for (const [index, text] of texts.entries()) {
    compare(text, tokenizer.encodeTrusted(text), theirs.parsed[index])
    if (hidden.some(({ content }) => text.includes(content))) continue
    compare(text, encodePlain(tokenizer, text), theirs.plain[index])
    plain += 1
  }
  const kinds = ['tokenizer.ggml.model', 'tokenizer.ggml.pre'].map((key) => metadata.get(key) ?? '')
  return {
    kind: kinds.map(String).join(' '),
    size,
    parsed: texts.length,
    plain,
    differences,
    hasSameEnds: endTokens.join() === theirs.endTokens.join() && addsBos === theirs.addsBos,
  }
}

/** Most special tokens of a file that texts contain. */
const MAX_SPECIALS = 200

/** Returns the tokens of a text as the content of a message. */
function encodePlain(tokenizer: PromptTokenizer, text: string): readonly number[] {
  const conversation: Conversation = { messages: [{ role: 'user', content: text }] }
  const render: Parameters<PromptTokenizer['encode']>[1] = (_, escape) => {
    const escaped = escape(text)
    return { text: escaped, ends: [], opening: escaped.length, answer: escaped.length }
  }
  return tokenizer.encode(conversation, render, Infinity).tokens
}
