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
import { createScoreEncoder } from './score-merges.ts'
import { createSpecialTokenEscapes, WordMatcher } from './special-token-escape.ts'
import { assertShallow, type EscapeText, hasToolCalls } from './template-variables.ts'
import { createTokenBounds, promptTooLong } from './token-bounds.ts'
import type { AddedToken, TokenizerFile } from './vocabulary.ts'

/**
 * Returns functions that turn conversations and texts into tokens, with the model's template for
 * tools or the plain one. `contextWindow` is the limit of prompt and answer together, in tokens.
 * `placeholder` is the text of the token that templates write in place of an image. Changes the
 * tokenizer in `config`.
 */
export function createPromptBuilder(
  config: ModelConfig,
  contextWindow: number,
  placeholder?: string,
) {
  const { tokenizer, tokenizerConfig, templates, tokenNames, endTokens } = config
  const plain = parseTemplate(templates.plain, tokenNames)
  const tools = templates.tools === null ? plain : parseTemplate(templates.tools, tokenNames)
  const source = templates.plain + (templates.tools ?? '')
  const encoder = new PromptTokenizer(tokenizer, tokenizerConfig, source, endTokens, placeholder)

  // An answer needs at least one token.
  const maxPromptTokens = contextWindow - 1
  return {
    /**
     * Renders and tokenizes a conversation. Throws `invalid_request` if it does not fit into
     * `contexts` context windows, or if the template rejects it.
     */
    prepare: (conversation: Conversation, contexts = 1): Prompt => {
      const { messages, tools: offered = [] } = conversation
      const { render } = offered.length > 0 || hasToolCalls(messages) ? tools : plain
      return encoder.encode(conversation, render, contexts * maxPromptTokens, maxPromptTokens)
    },
    /** Tokenizes text of the engine itself, in which special tokens count. */
    encodeTrusted: (text: string): number[] => encoder.encodeTrusted(text),
  }
}

/** The number of tokens in an error is a lower bound. */
const BOUND = { isExact: false }

type Render = (conversation: Conversation, hide: EscapeText) => Rendering

/** A part of a text: a structural token, or the text between two. */
interface Section {
  /** Position in the text. */
  at: number
  text: string
  /** Token id; `null` for text. */
  id: number | null
}

/**
 * Tokenizer of prompts. All text of a request that could be structural, alone or with the text
 * around it, is escaped before the template reads it. The rendered text is split at the remaining
 * structural tokens, which come from the template. The text between them is restored. It is encoded
 * by a tokenizer that does not know the structural tokens.
 */
export class PromptTokenizer {
  readonly #template: string
  readonly #endTokens: ReadonlySet<number>
  readonly #placeholder: string | undefined
  /** Structural tokens by their texts. */
  readonly #structural: ReadonlyMap<string, AddedToken>
  readonly #matcher: WordMatcher
  readonly #createEscape: ReturnType<typeof createSpecialTokenEscapes>
  readonly #bounds: ReturnType<typeof createTokenBounds>
  readonly #plain: PlainTokenizer

  /**
   * `template` is the source of the chat template; tokens that it names are structural.
   * `endTokens` end messages. `placeholder` is the text of the token that stands for an image.
   * Changes `file`.
   */
  constructor(
    file: TokenizerFile,
    config: object,
    template: string,
    endTokens: ReadonlySet<number> = new Set(),
    placeholder?: string,
  ) {
    const structural = file.added_tokens.filter((token) => isSpecialToken(token, template))
    const words = structural.map(({ content }) => content)
    const textTokens = file.added_tokens.filter((token) => !structural.includes(token))
    this.#template = template
    this.#endTokens = endTokens
    this.#placeholder = placeholder
    this.#structural = new Map(structural.map((token) => [token.content, token]))
    this.#matcher = new WordMatcher(words)
    this.#createEscape = createSpecialTokenEscapes(words)
    this.#bounds = createTokenBounds(file, config, textTokens)
    this.#plain = new PlainTokenizer(file, config, structural, textTokens)
  }

  /**
   * Renders and tokenizes a conversation. Throws `invalid_request` as early as possible if it has
   * more than `maxTokens` tokens. The message gives `fitting` as the limit, by default `maxTokens`.
   */
  encode(
    conversation: Conversation,
    render: Render,
    maxTokens: number,
    fitting = maxTokens,
  ): Prompt {
    for (const { parameters } of conversation.tools ?? []) assertShallow(parameters)
    const { least, likely } = this.#bounds.conversation(conversation)
    if (least > maxTokens) throw promptTooLong(least, fitting, BOUND)
    const tooLong = likely > maxTokens ? promptTooLong(likely, fitting, BOUND) : null
    const { escape, restore } = this.#createEscape(
      this.#template + JSON.stringify(conversation, textOnly),
    )
    const rendering = renderOrThrow(() => render(conversation, escape), tooLong)
    const sections = this.#split(rendering.text)
    const restored = sections.map((section) => ({ ...section, text: restore(section.text) }))
    const images = listImages(conversation)
    assertPlaced(images, sections, this.#placeholder)
    const leastTokens = this.#countLeast(restored, images)
    if (leastTokens > maxTokens) throw promptTooLong(leastTokens, fitting, BOUND)
    const { tokens, starts } = this.#join(restored, images)
    if (tokens.length > maxTokens) throw promptTooLong(tokens.length, fitting, { isExact: true })

    const ends = findMessageEnds(sections, rendering.ends, this.#endTokens)
    return {
      tokens,
      boundaries: [...new Set(ends.map((index) => starts[index] ?? tokens.length))],
      opening: restore(findOpening(sections, rendering)),
      ...(rendering.answer < rendering.text.length && { hasResponsePrefix: true }),
      ...(images.length > 0 && { images }),
    }
  }

  /** Tokenizes text of the engine itself, in which special tokens count. */
  encodeTrusted(text: string): number[] {
    return this.#split(text).flatMap((section) => this.#toTokens(section, false))
  }

  /** Splits a text at the structural tokens. */
  #split(text: string): Section[] {
    const texts = this.#matcher.split(text)
    const tokenAt = (index: number) => this.#structural.get(texts[index] ?? '')
    let at = 0
    return texts.map((section, index) => {
      const begin = at
      at += section.length
      const token = tokenAt(index)
      if (token) return { at: begin, text: section, id: token.id }
      let strippedText = section
      if (tokenAt(index + 1)?.lstrip) strippedText = strippedText.trimEnd()
      if (tokenAt(index - 1)?.rstrip) strippedText = strippedText.trimStart()
      return { at: begin, text: strippedText, id: null }
    })
  }

  #countLeast(sections: readonly Section[], images: readonly PromptImage[]): number {
    let count = 0
    for (const { rowCount } of images) count += rowCount
    for (const { text, id } of sections)
      count += id === null ? this.#bounds.text(this.#plain.normalize(text)) : 1
    return count
  }

  #toTokens({ text, id }: Section, first: boolean): number[] {
    if (id !== null) return [id]
    return text === '' ? [] : this.#plain.encode(text, first)
  }

  /** Returns the tokens of sections and images, and the number of tokens before each section. */
  #join(sections: readonly Section[], images: readonly PromptImage[]) {
    const tokens: number[] = []
    let imagesBefore = 0
    const starts = sections.map((section, index) => {
      const tokensBefore = tokens.length
      const isPlace = section.id !== null && section.text === this.#placeholder
      const image = isPlace ? images[imagesBefore++] : undefined
      const added = image ? this.#expandImage(image) : this.#toTokens(section, index === 0)
      for (const token of added) tokens.push(token)
      return tokensBefore
    })
    return { tokens, starts }
  }

  /** Returns the tokens and the numbers of rows that stand for an image. */
  #expandImage({ pieces, firstRow }: PromptImage): number[] {
    let row = firstRow
    const tokens: number[] = []
    let text = ''
    for (const piece of [...pieces, 0]) {
      // Texts in a row are one text for the tokenizer.
      if (typeof piece === 'string') text += piece
      else {
        tokens.push(...this.encodeTrusted(text))
        text = ''
        for (const end = row + piece; row < end; row += 1) tokens.push(row)
      }
    }
    return tokens
  }
}

/** Renders a conversation. Throws `tooLong`, if given, instead of an error of the template. */
function renderOrThrow(render: () => Rendering, tooLong: InoriginError | null): Rendering {
  try {
    return render()
  } catch (thrown) {
    // The template is not at fault if it fails on a conversation that would not fit.
    const failed = thrown instanceof InoriginError && thrown.code === 'template_failed'
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
export function isSpecialToken({ special, content }: AddedToken, template: string): boolean {
  if (special === true || CONTROL_TOKEN.test(content)) return true
  return /[^\s\p{L}\p{N}▁]/u.test(content) && template.includes(content)
}

const CONTROL_TOKEN =
  /^<[|｜].+[|｜]>$|^[<[].*(think|thought|reason|tool|call|response|turn|role|system|user|assistant).*[>\]]$/i

/** Tokenizer of text, which may become `textTokens` but none of `structural`. Changes `file`. */
class PlainTokenizer {
  readonly #tokenizer: Tokenizer
  readonly #firstPreTokenizer: Tokenizer['pre_tokenizer']
  readonly #laterPreTokenizer: Tokenizer['pre_tokenizer']

  constructor(
    file: TokenizerFile,
    config: object,
    structural: readonly AddedToken[],
    textTokens: readonly AddedToken[],
  ) {
    removeFromVocabulary(file, structural)
    this.#tokenizer = createTokenizer({ ...file, added_tokens: textTokens }, config)
    const { model } = this.#tokenizer
    if (file.model.scores && model) model.encode = createScoreEncoder(file.model)
    this.#firstPreTokenizer = this.#tokenizer.pre_tokenizer
    // The library prepends a space to the first section of each call, but only one section is the
    // first in the prompt.
    this.#laterPreTokenizer = createLaterPreTokenizer(file, config) ?? this.#firstPreTokenizer
  }

  /**
   * Tokenizes a text as the model's tokenizer does, but without special tokens. `first` is `true`
   * for the text at the start of the prompt.
   */
  encode(text: string, first: boolean): number[] {
    this.#tokenizer.pre_tokenizer = first ? this.#firstPreTokenizer : this.#laterPreTokenizer
    // Half of a surrogate pair has no bytes. It is replaced before the vocabulary is searched.
    const wellFormedText = text.replace(/[\uD800-\uDFFF]/gu, '\uFFFD')
    const { ids } = this.#tokenizer.encode(wellFormedText, { add_special_tokens: false })
    if (!ids.some((id) => id === undefined)) return ids
    throw modelUnusable('its tokenizer lacks a token for some of the text.')
  }

  /** Returns the text after the tokenizer's normalization. */
  normalize(text: string): string {
    return this.#tokenizer.normalizer?.normalize(text) ?? text
  }
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

/**
 * Returns a pre-tokenizer that prepends no space, for a file whose own one prepends a space to the
 * first section; otherwise `null`.
 */
function createLaterPreTokenizer(file: TokenizerFile, config: object): Tokenizer['pre_tokenizer'] {
  const own = JSON.stringify(file.pre_tokenizer ?? null)
  const never = own.replaceAll('"prepend_scheme":"first"', '"prepend_scheme":"never"')
  if (never === own) return null
  const parts = {
    ...file,
    added_tokens: [],
    model: { type: 'BPE', vocab: {}, merges: [] },
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

/** Throws `invalid_request` unless the template wrote the token of an image for each image. */
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
