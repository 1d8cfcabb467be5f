/**
 * Tokenizes prompts so that user text never becomes a token that structures the conversation. Such
 * tokens are the special tokens of the tokenizer and the tokens that the chat template writes.
 */
import { InoriginError } from '../../error.ts'
import type { Conversation, Prompt } from '../engine.ts'
import type { PromptImage } from '../images.ts'
import { assertPlaced, listImages, textOnly } from './image-placeholders.ts'
import { createSpecialTokenEscapes } from './special-token-escape.ts'
import type { AddedToken, TokenizerFile } from './tokenizer-file.ts'
import type { TextRange } from './message-markers.ts'
import { createSectionTokenizer, type Section } from './sections.ts'
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
  const specialTokenEscapes = createSpecialTokenEscapes(specialTokens.map(({ content }) => content))
  const textTokens = file.added_tokens.filter((token) => !specialTokens.includes(token))
  const bounds = createTokenBounds(file, config, textTokens)
  const tokenizer = createSectionTokenizer(file, config, specialTokens, textTokens, placeholder)

  const countLeast = (sections: readonly Section[], images: readonly PromptImage[]): number =>
    sections.reduce(
      (sum, { text, id }) => sum + (id === null ? bounds.text(tokenizer.normalize(text)) : 1),
      images.reduce((sum, { rowCount }) => sum + rowCount, 0),
    )

  const encode: PromptTokenizer['encode'] = (
    conversation,
    render,
    maxTokens,
    fitting = maxTokens,
  ) => {
    for (const { parameters } of conversation.tools ?? []) assertShallow(parameters)
    const { least, likely } = bounds.conversation(conversation)
    if (least > maxTokens) throw promptTooLong(least, fitting, false)
    const tooLong = likely > maxTokens ? promptTooLong(likely, fitting, false) : null
    const { escape, restore } = specialTokenEscapes(
      template + JSON.stringify(conversation, textOnly),
    )
    const rendering = renderOrThrow(() => render(conversation, escape), tooLong)
    const sections = tokenizer.split(rendering.text)
    const restored = sections.map((section) => ({ ...section, text: restore(section.text) }))
    const images = listImages(conversation)
    assertPlaced(images, sections, placeholder)
    const leastTokens = countLeast(restored, images)
    if (leastTokens > maxTokens) throw promptTooLong(leastTokens, fitting, false)
    const { tokens, starts } = tokenizer.join(restored, images)
    if (tokens.length > maxTokens) throw promptTooLong(tokens.length, fitting, true)

    const ends = findMessageEnds(sections, rendering.ends, endTokens)
    return {
      tokens,
      boundaries: [...new Set(ends.map((index) => starts[index] ?? tokens.length))],
      opening: restore(findOpening(sections, rendering)),
      ...(rendering.answer < rendering.text.length && { hasResponsePrefix: true }),
      ...(images.length > 0 && { images }),
    }
  }
  return { encode, encodeTrusted: tokenizer.encodeTrusted }
}

/** Renders a conversation. Throws `tooLong`, if given, instead of an error of the template. */
function renderOrThrow(render: () => Rendering, tooLong: InoriginError | null): Rendering {
  try {
    return render()
  } catch (thrown) {
    // The template is not at fault if it fails on a conversation that would not fit.
    const failed = thrown instanceof InoriginError && thrown.kind === 'unavailable'
    throw failed && tooLong ? tooLong : thrown
  }
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
