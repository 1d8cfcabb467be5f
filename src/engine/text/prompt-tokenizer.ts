/**
 * Tokenizes prompts so that user text never becomes a token that structures the conversation. Such
 * tokens are the special tokens of the tokenizer and the tokens that the chat template writes.
 */
import { InoriginError } from '../../error.ts'
import type { Conversation, Prompt } from '../engine.ts'
import { assertPlaced, expandImage, listImages, textOnly } from './image-placeholders.ts'
import { createSpecialTokenEscapes } from './special-token-escape.ts'
import type { AddedToken, TokenizerFile } from './tokenizer-file.ts'
import type { TextRange } from './message-markers.ts'
import { createWordMatcher } from './word-matcher.ts'
import { createPlainTokenizer } from './plain-tokenizer.ts'
import { createTokenBounds, promptTooLong } from './token-bounds.ts'
import type { Rendering } from './chat-template.ts'
import { assertShallow, type EscapeText } from './template-variables.ts'

/** Tokenizer of prompts. */
interface PromptTokenizer {
  /**
   * Renders and tokenizes a conversation. Throws `invalid_request` as early as possible if it has
   * more than `maxTokens` tokens. The message gives `fitting` as the limit, by default `maxTokens`.
   */
  encode(conversation: Conversation, render: Render, maxTokens: number, fitting?: number): Prompt
  /** Tokenizes text of the engine itself, in which special tokens count. */
  encodeTrusted(text: string): number[]
}

type Render = (conversation: Conversation, hide: EscapeText) => Rendering

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
 * names are structural. `endTokens` end messages. `placeholder` is the text of the token that stands
 * for an image. Changes `file`.
 *
 * All text of a request that could be structural, alone or with the text around it, is escaped
 * before the template reads it. The rendered text is split at the remaining structural tokens,
 * which come from the template. The text between them is restored. It is encoded by a tokenizer
 * that does not know the structural tokens.
 */
export function createPromptTokenizer(
  file: TokenizerFile,
  config: object,
  template: string,
  endTokens: ReadonlySet<number> = new Set(),
  placeholder?: string,
): PromptTokenizer {
  const specialTokens = file.added_tokens.filter((token) => isSpecialToken(token, template))
  const words = specialTokens.map(({ content }) => content)
  const matcher = createWordMatcher(words)
  const specialTokenEscapes = createSpecialTokenEscapes(words)
  const byText = new Map(specialTokens.map((token) => [token.content, token]))
  const textTokens = file.added_tokens.filter((token) => !specialTokens.includes(token))
  const bounds = createTokenBounds(file, config, textTokens)
  const plain = createPlainTokenizer(file, config, specialTokens, textTokens)

  const toSections = (text: string): Section[] => splitSections(matcher.split(text), byText)

  const toTokens = ({ text, id }: Section, first: boolean): number[] => {
    if (id !== null) return [id]
    return text === '' ? [] : plain.encode(text, first)
  }

  const encodeTrusted = (text: string): number[] =>
    toSections(text).flatMap((section) => toTokens(section, false))

  const encode: PromptTokenizer['encode'] = (
    conversation,
    render,
    maxTokens,
    fitting = maxTokens,
  ) => {
    for (const { parameters } of conversation.tools ?? []) assertShallow(parameters)
    const { least, likely } = bounds.conversation(conversation)
    if (least > maxTokens) throw promptTooLong(least, fitting, false)
    const specialTokenEscape = specialTokenEscapes(
      template + JSON.stringify(conversation, textOnly),
    )
    let rendering
    try {
      rendering = render(conversation, specialTokenEscape.escape)
    } catch (thrown) {
      // The template is not at fault if it fails on a conversation that would not fit.
      const failed = thrown instanceof InoriginError && thrown.kind === 'unavailable'
      if (failed && likely > maxTokens) throw promptTooLong(likely, fitting, false)
      throw thrown
    }
    const sections = toSections(rendering.text)
    const restored = sections.map((section) => ({
      ...section,
      text: specialTokenEscape.restore(section.text),
    }))
    const images = listImages(conversation)
    assertPlaced(images, sections, placeholder)
    const leastTokens = restored.reduce(
      (sum, { text, id }) => sum + (id === null ? bounds.text(plain.normalize(text)) : 1),
      images.reduce((sum, { rowCount }) => sum + rowCount, 0),
    )
    if (leastTokens > maxTokens) throw promptTooLong(leastTokens, fitting, false)
    const tokens: number[] = []
    let imagesBefore = 0
    const sectionStarts = restored.map((section, index) => {
      const tokensBefore = tokens.length
      const image = section.text === placeholder ? images[imagesBefore] : undefined
      if (image && section.id !== null) imagesBefore += 1
      const added =
        image && section.id !== null
          ? expandImage(image, encodeTrusted)
          : toTokens(section, index === 0)
      for (const token of added) tokens.push(token)
      return tokensBefore
    })
    if (tokens.length > maxTokens) throw promptTooLong(tokens.length, fitting, true)

    const boundaries = findMessageEnds(sections, rendering.ends, endTokens).map(
      (index) => sectionStarts[index] ?? tokens.length,
    )
    return {
      tokens,
      boundaries: [...new Set(boundaries)],
      opening: specialTokenEscape.restore(findOpening(sections, rendering)),
      ...(rendering.answer < rendering.text.length && { hasResponsePrefix: true }),
      ...(images.length > 0 && { images }),
    }
  }
  return { encode, encodeTrusted }
}

/** Returns the sections of these texts, which are structural tokens and the text between them. */
function splitSections(
  texts: readonly string[],
  byText: ReadonlyMap<string, AddedToken>,
): Section[] {
  let at = 0
  return texts.map((section, index) => {
    const begin = at
    at += section.length
    const token = byText.get(section)
    if (token) return { at: begin, text: section, id: token.id }
    let strippedText = section
    if (byText.get(texts[index + 1] ?? '')?.lstrip) strippedText = strippedText.trimEnd()
    if (byText.get(texts[index - 1] ?? '')?.rstrip) strippedText = strippedText.trimStart()
    return { at: begin, text: strippedText, id: null }
  })
}

/** Returns the text that opens the answer, with the whole of a structural token that it cuts. */
function findOpening(
  sections: readonly Section[],
  { text, opening, answer }: Pick<Rendering, 'text' | 'opening' | 'answer'>,
): string {
  const first = sections.find((each) => each.id !== null && each.at + each.text.length > opening)
  return text.slice(Math.min(opening, first?.at ?? opening), answer)
}

/**
 * Returns the indexes of the sections before which messages end. A message ends after the last end
 * token in its range, or where its text stops. A message that ends within a text section is
 * skipped.
 */
function findMessageEnds(
  sections: readonly Section[],
  ends: readonly TextRange[],
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
function isSpecialToken({ special, content }: AddedToken, template: string): boolean {
  if (special === true || CONTROL_TOKEN.test(content)) return true
  return /[^\s\p{L}\p{N}▁]/u.test(content) && template.includes(content)
}

const CONTROL_TOKEN =
  /^<[|｜].+[|｜]>$|^[<[].*(think|thought|reason|tool|call|response|turn|role|system|user|assistant).*[>\]]$/i
