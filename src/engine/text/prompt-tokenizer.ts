/**
 * Tokenizes prompts so that user text never becomes a token that structures the conversation. Such
 * tokens are the special tokens of the tokenizer and the tokens that the chat template writes.
 */
import { Tokenizer } from '@huggingface/tokenizers'
import { InoriginError } from '../../error.ts'
import type { Conversation, Prompt } from '../engine.ts'
import { modelUnusable } from '../failure.ts'
import type { PromptImage } from '../images.ts'
import { parseTemplate, type Rendering } from './chat-template.ts'
import type { ModelConfig } from './config.ts'
import type { TextRange } from './message-markers.ts'
import { createSpecialTokenEscapes, createWordMatcher } from './special-token-escape.ts'
import { assertShallow, type EscapeText, hasToolCalls } from './template-variables.ts'
import { createTokenBounds, promptTooLong } from './token-bounds.ts'
import type { AddedToken, TokenizerFile } from './vocabulary.ts'

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

// Splits rendered text at structural tokens, and tokenizes the sections.

/** A part of a text: a structural token, or the text between two. */
interface Section {
  /** Position in the text. */
  at: number
  text: string
  /** Token id; `null` for text. */
  id: number | null
}

interface SectionTokenizer {
  split(text: string): Section[]
  /** Returns the text of a section after the tokenizer's normalization. */
  normalize(text: string): string
  /** Tokenizes text of the engine itself, in which special tokens count. */
  encodeTrusted(text: string): number[]
  /**
   * Returns the tokens of all sections, with images in their places. `starts` has the number of
   * tokens before each section.
   */
  join(
    sections: readonly Section[],
    images: readonly PromptImage[],
  ): { tokens: number[]; starts: number[] }
}

/**
 * Creates a tokenizer of sections. Text may become one of `textTokens`, but never a structural
 * token. `placeholder` is the text of the token that stands for an image. Changes `file`.
 */
function createSectionTokenizer(
  file: TokenizerFile,
  config: object,
  structuralTokens: readonly AddedToken[],
  textTokens: readonly AddedToken[],
  placeholder: string | undefined,
): SectionTokenizer {
  const plain = createPlainTokenizer(file, config, structuralTokens, textTokens)
  const matcher = createWordMatcher(structuralTokens.map(({ content }) => content))
  const byText = new Map(structuralTokens.map((token) => [token.content, token]))

  const split = (text: string): Section[] => toSections(matcher.split(text), byText)

  const toTokens = ({ text, id }: Section, first: boolean): number[] => {
    if (id !== null) return [id]
    return text === '' ? [] : plain.encode(text, first)
  }

  const encodeTrusted = (text: string): number[] =>
    split(text).flatMap((section) => toTokens(section, false))

  return {
    split,
    normalize: plain.normalize,
    encodeTrusted,
    join(sections, images) {
      const tokens: number[] = []
      let imagesBefore = 0
      const starts = sections.map((section, index) => {
        const tokensBefore = tokens.length
        const isPlace = section.id !== null && section.text === placeholder
        const image = isPlace ? images[imagesBefore++] : undefined
        const added = image ? expandImage(image, encodeTrusted) : toTokens(section, index === 0)
        for (const token of added) tokens.push(token)
        return tokensBefore
      })
      return { tokens, starts }
    },
  }
}

/** Returns the sections of these texts, which are structural tokens and the text between them. */
function toSections(texts: readonly string[], byText: ReadonlyMap<string, AddedToken>): Section[] {
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

// Tokenizes plain text, with a tokenizer that does not know special tokens.

/** Tokenizer of plain text. */
interface PlainTokenizer {
  /**
   * Tokenizes a text as the model's tokenizer does, but without special tokens. `first` is `true`
   * for the text at the start of the prompt.
   */
  encode(text: string, first: boolean): number[]
  /** Returns the text after the tokenizer's normalization. */
  normalize(text: string): string
}

/**
 * Creates a tokenizer in which text never becomes a token of `specialTokens` but may become one of
 * `textTokens`. Changes `file`.
 */
function createPlainTokenizer(
  file: TokenizerFile,
  config: object,
  specialTokens: readonly AddedToken[],
  textTokens: readonly AddedToken[],
): PlainTokenizer {
  removeFromVocabulary(file, specialTokens)
  const tokenizer = createTokenizer({ ...file, added_tokens: textTokens }, config)
  const firstPreTokenizer = tokenizer.pre_tokenizer
  // The library prepends a space to the first section of each call, but only one section is the
  // first in the prompt.
  const laterPreTokenizer = prependsToFirst(file.pre_tokenizer)
    ? createLaterPreTokenizer(file, config)
    : firstPreTokenizer

  const encode: PlainTokenizer['encode'] = (text, first) => {
    tokenizer.pre_tokenizer = first ? firstPreTokenizer : laterPreTokenizer
    const { ids } = tokenizer.encode(text, { add_special_tokens: false })
    if (ids.some((id) => id === undefined)) {
      throw modelUnusable('its tokenizer lacks a token for some of the text.')
    }
    return ids
  }
  return { encode, normalize: (text) => tokenizer.normalizer?.normalize(text) ?? text }
}

/**
 * Removes the special tokens from the vocabulary, where some tokenizers list them too. The unknown
 * token stays, because characters without a token become it.
 */
function removeFromVocabulary(
  { model }: TokenizerFile,
  specialTokens: readonly AddedToken[],
): void {
  const { vocab, unk_token: unknown } = model
  for (const { id, content } of specialTokens) {
    if (Array.isArray(vocab)) {
      // The index of a piece is its id, so it is emptied instead of removed. An empty piece is
      // never found.
      const piece = vocab[id]
      if (piece?.[0] === content) piece[0] = ''
    } else if (content !== unknown) delete vocab[content]
  }
}

const prependsToFirst = (preTokenizer: unknown): boolean =>
  JSON.stringify(preTokenizer ?? null).includes('"prepend_scheme":"first"')

/** Returns the pre-tokenizer for sections after the first, which prepends no space. */
function createLaterPreTokenizer(file: TokenizerFile, config: object): Tokenizer['pre_tokenizer'] {
  const never = JSON.stringify(file.pre_tokenizer).replaceAll(
    '"prepend_scheme":"first"',
    '"prepend_scheme":"never"',
  )
  const empty = { type: 'BPE', vocab: {}, merges: [] }
  const parts = {
    ...file,
    added_tokens: [],
    model: empty,
    pre_tokenizer: JSON.parse(never) as unknown,
  }
  return createTokenizer(parts, config).pre_tokenizer
}

/** Creates a tokenizer. Throws `model_unusable` if the file is invalid. */
function createTokenizer(file: object, config: object): Tokenizer {
  try {
    return new Tokenizer(file, config)
  } catch (cause) {
    throw modelUnusable(`its tokenizer cannot be read (${String(cause)}).`, cause)
  }
}

// Puts images into prompts, in the places that the chat template wrote for them.

/** Returns the images of a conversation, in order. */
const listImages = ({ messages, images }: Conversation): PromptImage[] =>
  images
    ? messages.flatMap((message) =>
        message.role === 'user'
          ? (message.images ?? []).flatMap(({ place }) => images.get(place) ?? [])
          : [],
      )
    : []

/** Replacer of `JSON.stringify` that leaves out the bytes of images. */
const textOnly = (_: string, value: unknown): unknown =>
  ArrayBuffer.isView(value) ? undefined : value

/**
 * Throws `invalid_request` unless the template wrote one token for each image. Text of a user cannot
 * become that token.
 */
function assertPlaced(
  images: readonly PromptImage[],
  sections: readonly { text: string; id: number | null }[],
  placeholder: string | undefined,
): void {
  if (images.length === 0) return
  const places = sections.filter(({ text, id }) => id !== null && text === placeholder).length
  if (places === images.length) return
  throw new InoriginError(
    'invalid_request',
    `The chat template of this model has places for ${places} of the ${images.length} images. ` +
      'Leave images out, or use another model.',
    { code: 'template_refused', param: 'messages' },
  )
}

/** Returns the tokens and the numbers of rows that stand for an image. */
function expandImage(
  { pieces, firstRow }: PromptImage,
  encode: (text: string) => readonly number[],
): number[] {
  let row = firstRow
  const tokens: number[] = []
  let text = ''
  const flush = (): void => {
    tokens.push(...encode(text))
    text = ''
  }
  for (const piece of pieces) {
    if (typeof piece === 'string') {
      // Texts in a row are one text for the tokenizer.
      text += piece
      continue
    }
    flush()
    for (const end = row + piece; row < end; row += 1) tokens.push(row)
  }
  flush()
  return tokens
}

// Turns conversations into prompts, with the template for tools or the plain one.

/** Turns conversations and texts into tokens. */
export interface PromptBuilder {
  /**
   * Renders and tokenizes a conversation. Throws `invalid_request` if it does not fit into
   * `contexts` context windows, by default 1, or if the template rejects it.
   */
  prepare(conversation: Conversation, contexts?: number): Prompt
  /** Tokenizes a text in which special tokens count. */
  encodeTrusted(text: string): number[]
}

/**
 * Parses the model's templates. `contextWindow` is the limit of prompt and answer together, in
 * tokens. `placeholder` is the text of the token that templates write in place of an image. Changes the
 * tokenizer in `config`.
 */
export function createPromptBuilder(
  config: ModelConfig,
  contextWindow: number,
  placeholder?: string,
): PromptBuilder {
  const { tokenizer, tokenizerConfig, templates, tokenNames, endTokens } = config
  const plain = parseTemplate(templates.plain, tokenNames)
  const tools = templates.tools === null ? plain : parseTemplate(templates.tools, tokenNames)
  const source = templates.plain + (templates.tools ?? '')
  const encoder = createPromptTokenizer(tokenizer, tokenizerConfig, source, endTokens, placeholder)

  // An answer needs at least one token.
  const maxPromptTokens = contextWindow - 1
  const prepare: PromptBuilder['prepare'] = (conversation, contexts = 1) => {
    const { messages, tools: offered = [] } = conversation
    const { render } = offered.length > 0 || hasToolCalls(messages) ? tools : plain
    return encoder.encode(conversation, render, contexts * maxPromptTokens, maxPromptTokens)
  }
  return { prepare, encodeTrusted: encoder.encodeTrusted }
}
