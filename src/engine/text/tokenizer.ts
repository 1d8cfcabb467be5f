/**
 * Tokenizes prompts so that user text never becomes a token that structures the conversation. Such
 * tokens are the special tokens of the tokenizer and the tokens that the chat template writes.
 */
import { InoriginError } from '../../error.ts'
import type { Conversation, Prompt } from '../engine.ts'
import { createDisguises } from './disguise.ts'
import type { AddedToken, TokenizerFile } from './file.ts'
import type { Range } from './marks.ts'
import { createMatcher } from './matcher.ts'
import { createPlainEncoder } from './plain.ts'
import { createSize, tooLong } from './size.ts'
import type { Rendering } from './template.ts'
import { type Hide, shallow } from './variables.ts'

/** Tokenizer of prompts. */
export interface Encoder {
  /**
   * Renders and tokenizes a conversation. Throws `invalid_request` as early as possible if it has
   * more than `most` tokens. The message gives `fitting` as the limit, by default `most`.
   */
  encode(conversation: Conversation, render: Render, most: number, fitting?: number): Prompt
  /** Tokenizes text of the engine itself, in which special tokens count. */
  trusted(text: string): number[]
}

type Render = (conversation: Conversation, hide: Hide) => Rendering

/** A part of a prompt: a structural token, or the text between two. */
interface Section {
  /** Position in the prompt's text. */
  at: number
  text: string
  /** Token id; `null` for text. */
  id: number | null
}

/**
 * Creates a tokenizer of prompts. `template` is the source of the chat template; tokens that it
 * names are structural. `endTokens` end messages. Changes `file`.
 *
 * All text of a request that could be structural, alone or with the text around it, is disguised
 * before the template reads it. The rendered text is split at the remaining structural tokens,
 * which come from the template. The text between them is restored. It is encoded by a tokenizer
 * that does not know the structural tokens.
 */
export function createEncoder(
  file: TokenizerFile,
  config: object,
  template: string,
  endTokens: ReadonlySet<number> = new Set(),
): Encoder {
  const structure = file.added_tokens.filter((token) => isStructure(token, template))
  const words = structure.map(({ content }) => content)
  const matcher = createMatcher(words)
  const disguises = createDisguises(words)
  const byText = new Map(structure.map((token) => [token.content, token]))
  const rest = file.added_tokens.filter((token) => !structure.includes(token))
  const size = createSize(file, config, rest)
  const plain = createPlainEncoder(file, config, structure, rest)

  const cut = (text: string): Section[] => {
    let at = 0
    const texts = matcher.split(text)
    return texts.map((section, index) => {
      const begin = at
      at += section.length
      const token = byText.get(section)
      if (token) return { at: begin, text: section, id: token.id }
      let bare = section
      if (byText.get(texts[index + 1] ?? '')?.lstrip) bare = bare.trimEnd()
      if (byText.get(texts[index - 1] ?? '')?.rstrip) bare = bare.trimStart()
      return { at: begin, text: bare, id: null }
    })
  }

  const tokensOf = ({ text, id }: Section, first: boolean): number[] => {
    if (id !== null) return [id]
    return text === '' ? [] : plain.encode(text, first)
  }

  const encode: Encoder['encode'] = (conversation, render, most, fitting = most) => {
    for (const { parameters } of conversation.tools ?? []) shallow(parameters)
    const { least, likely } = size.conversation(conversation)
    if (least > most) throw tooLong(least, fitting, false)
    const disguise = disguises(template + JSON.stringify(conversation))
    let rendering
    try {
      rendering = render(conversation, disguise.on)
    } catch (thrown) {
      // The template is not at fault if it fails on a conversation that would not fit.
      const failed = thrown instanceof InoriginError && thrown.kind === 'unavailable'
      if (failed && likely > most) throw tooLong(likely, fitting, false)
      throw thrown
    }
    const sections = cut(rendering.text)
    const shown = sections.map((section) => ({ ...section, text: disguise.off(section.text) }))
    const fewest = shown.reduce(
      (sum, { text, id }) => sum + (id === null ? size.text(plain.normalise(text)) : 1),
      0,
    )
    if (fewest > most) throw tooLong(fewest, fitting, false)
    const tokens: number[] = []
    const lengths = shown.map((section, index) => {
      const before = tokens.length
      for (const token of tokensOf(section, index === 0)) tokens.push(token)
      return before
    })
    if (tokens.length > most) throw tooLong(tokens.length, fitting, true)

    const { text, ends, opening, answer } = rendering
    const open = sections.find((each) => each.id !== null && each.at + each.text.length > opening)
    const boundaries = endsIn(sections, ends, endTokens).map(
      (index) => lengths[index] ?? tokens.length,
    )
    return {
      tokens,
      boundaries: [...new Set(boundaries)],
      opening: disguise.off(text.slice(Math.min(opening, open?.at ?? opening), answer)),
      ...(answer < text.length && { begun: true }),
    }
  }
  return {
    encode,
    trusted: (text) => cut(text).flatMap((section) => tokensOf(section, false)),
  }
}

/**
 * Returns the indexes of the sections before which messages end. A message ends after the last end
 * token in its range, or where its text stops. A message that ends within a text section is
 * skipped.
 */
function endsIn(
  sections: readonly Section[],
  ends: readonly Range[],
  endTokens: ReadonlySet<number>,
): number[] {
  const found: number[] = []
  let index = 0
  for (const { from, to } of ends) {
    let end = -1
    while ((sections[index]?.at ?? Infinity) < from) index += 1
    for (; (sections[index]?.at ?? Infinity) <= to; index += 1) {
      const id = sections[index]?.id ?? null
      if (id === null) continue
      if (endTokens.has(id)) end = index + 1
      else if (end < 0) end = index
    }
    // A token where the next message begins may also be the end of that message.
    if (sections[index - 1]?.at === to) index -= 1
    if (end >= 0) found.push(end)
  }
  return found
}

/**
 * Returns `true` for tokens that are special, named in the template, or named like control tokens.
 * Document markup is text. Runs of spaces or letters are never structural, even if the template
 * contains them.
 */
function isStructure({ special, content }: AddedToken, template: string): boolean {
  if (special === true || CONTROL.test(content)) return true
  return /[^\s\p{L}\p{N}▁]/u.test(content) && template.includes(content)
}

const CONTROL =
  /^<[|｜].+[|｜]>$|^[<[].*(think|thought|reason|tool|call|response|turn|role|system|user|assistant).*[>\]]$/i
