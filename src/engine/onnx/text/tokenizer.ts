/**
 * Text to tokens, such that what users wrote can never become a token that gives a conversation its
 * structure. Such a token is one that the tokenizer calls special, or that the chat template
 * writes.
 */
import { Tokenizer } from '@huggingface/tokenizers'
import { InoriginError } from '../../../error.ts'
import type { ChatMessage } from '../../../types/index.ts'
import { modelUnusable } from '../failure.ts'
import { createMatcher } from './matcher.ts'
import { createDisguise } from './disguise.ts'
import { createSize, tooLong } from './size.ts'

/** One entry of `added_tokens` in tokenizer.json. */
export interface AddedToken {
  id: number
  content: string
  special?: boolean
  lstrip?: boolean
  rstrip?: boolean
}

/** The parts of tokenizer.json that are read here. */
export interface TokenizerFile {
  added_tokens: AddedToken[]
  model: {
    type?: string
    vocab: Record<string, number> | [piece: string, score: number][]
    unk_token?: string | null
    byte_fallback?: boolean
  }
  normalizer?: unknown
  pre_tokenizer: unknown
  decoder: unknown
}

export interface Encoder {
  /**
   * Tokens of what `render` makes of the messages. Throws `invalid_request` where there are more
   * than `most`, as early as that can be told.
   */
  encode(messages: readonly ChatMessage[], render: Render, most: number): number[]
}

type Render = (messages: readonly ChatMessage[]) => string

/**
 * `template` is the chat template's source; tokens that it names count as structure. Changes
 * `file`.
 *
 * Structural text inside messages, and what could become such text together with what stands
 * around it, is disguised before the template is rendered; the result is cut
 * at the structural tokens still to be seen, which are the template's own. What lies between them
 * is undisguised and encoded by a tokenizer that does not know the structural tokens at all.
 */
export function createEncoder(file: TokenizerFile, config: object, template: string): Encoder {
  const structure = file.added_tokens.filter((token) => isStructure(token, template))
  const matcher = createMatcher(structure.map(({ content }) => content))
  const byText = new Map(structure.map((token) => [token.content, token]))
  const rest = file.added_tokens.filter((token) => !structure.includes(token))
  const size = createSize(file, config, rest)
  const plain = createPlainEncoder(file, config, structure, rest)

  /** The prompt in order: ids of the template's structural tokens, and the text between them. */
  const cut = (messages: readonly ChatMessage[], render: Render): (number | string)[] => {
    const disguise = createDisguise([template, ...messages.map(({ content }) => content)])
    const hide = (text: string): string => {
      // Templates may trim.
      const continues = matcher.continues(text) || matcher.continues(text.trim())
      return disguise.on(text, matcher.starts(text), continues)
    }
    const sections = matcher.split(
      render(messages.map((message) => ({ ...message, content: hide(message.content) }))),
    )
    return sections.map((section, index) => {
      const token = byText.get(section)
      if (token) return token.id
      let text = section
      if (byText.get(sections[index + 1] ?? '')?.lstrip) text = text.trimEnd()
      if (byText.get(sections[index - 1] ?? '')?.rstrip) text = text.trimStart()
      return disguise.off(text)
    })
  }

  const encode: Encoder['encode'] = (messages, render, most) => {
    const { least, likely } = size.conversation(messages)
    if (least > most) throw tooLong(least, most, false)
    let parts
    try {
      parts = cut(messages, render)
    } catch (thrown) {
      // Not the template's fault if it cannot cope with more than would fit anyway.
      const failed = thrown instanceof InoriginError && thrown.kind === 'unavailable'
      if (failed && likely > most) throw tooLong(likely, most, false)
      throw thrown
    }
    const fewest = parts.reduce<number>(
      (sum, part) => sum + (typeof part === 'number' ? 1 : size.text(plain.normalise(part))),
      0,
    )
    if (fewest > most) throw tooLong(fewest, most, false)
    const tokens = parts.flatMap((part, index) => {
      if (typeof part === 'number') return part
      return part === '' ? [] : plain.encode(part, index === 0)
    })
    if (tokens.length > most) throw tooLong(tokens.length, most, true)
    return tokens
  }
  return { encode }
}

/** Runs of spaces or letters are not structure even where the template happens to contain them. */
function isStructure({ special, content }: AddedToken, template: string): boolean {
  return special === true || (/[^\s\p{L}\p{N}▁]/u.test(content) && template.includes(content))
}

interface PlainEncoder {
  /** As the model's tokenizer does, `first` where the text opens the prompt, without structure. */
  encode(text: string, first: boolean): number[]
  /** What the tokenizer makes of a text before it looks for tokens in it. */
  normalise(text: string): string
}

function createPlainEncoder(
  file: TokenizerFile,
  config: object,
  structure: readonly AddedToken[],
  rest: readonly AddedToken[],
): PlainEncoder {
  forget(file, structure)
  const tokenizer = build({ ...file, added_tokens: rest }, config)
  const opening = tokenizer.pre_tokenizer
  // The library prepends a space to the first section of each call; only one of ours is the first.
  const following = usesFirst(file.pre_tokenizer) ? laterPreTokenizer(file, config) : opening

  const encode: PlainEncoder['encode'] = (text, first) => {
    tokenizer.pre_tokenizer = first ? opening : following
    const { ids } = tokenizer.encode(text, { add_special_tokens: false })
    if (ids.some((id) => id === undefined)) {
      throw modelUnusable(
        'its tokenizer has no token for some of the text and none for the unknown.',
      )
    }
    return ids
  }
  return { encode, normalise: (text) => tokenizer.normalizer?.normalize(text) ?? text }
}

/**
 * Takes the structural tokens out of the vocabulary, where some tokenizers list them too. The
 * unknown token stays: it is what a character without a token becomes.
 */
function forget({ model }: TokenizerFile, structure: readonly AddedToken[]): void {
  const { vocab, unk_token: unknown } = model
  for (const { id, content } of structure) {
    if (Array.isArray(vocab)) {
      // Pieces are numbered by position; an empty one is never found.
      const piece = vocab[id]
      if (piece?.[0] === content) piece[0] = ''
    } else if (content !== unknown) delete vocab[content]
  }
}

const usesFirst = (preTokenizer: unknown): boolean =>
  JSON.stringify(preTokenizer ?? null).includes('"prepend_scheme":"first"')

function laterPreTokenizer(file: TokenizerFile, config: object): Tokenizer['pre_tokenizer'] {
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
  return build(parts, config).pre_tokenizer
}

function build(file: object, config: object): Tokenizer {
  try {
    return new Tokenizer(file, config)
  } catch (cause) {
    throw modelUnusable(`its tokenizer cannot be read (${String(cause)}).`, cause)
  }
}
