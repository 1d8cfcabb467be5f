/** The tokens of a tokenizer by id: what is written for each, and which of them are never text. */
import { createSpelling } from './decoding.ts'
import type { TokenizerFile } from './file.ts'

export interface Vocabulary {
  /** As the tokenizer names its tokens, which is not yet what a reader sees; holes have none. */
  readonly names: readonly (string | undefined)[]
  /** Tokens that stand for exactly their name. */
  readonly added: ReadonlySet<number>
  /** Of those, the ones that structure a text and are not part of it. */
  readonly special: ReadonlySet<number>
}

/** `config` is tokenizer_config.json. */
export function readVocabulary(file: TokenizerFile, config: object): Vocabulary {
  const names: (string | undefined)[] = []
  const { vocab } = file.model
  if (Array.isArray(vocab)) vocab.forEach(([piece], id) => (names[id] = piece))
  else for (const [piece, id] of Object.entries(vocab)) names[id] = piece
  for (const { id, content } of file.added_tokens) names[id] = content

  const alsoSpecial = new Set(additionalSpecial(config))
  const special = file.added_tokens.filter(
    (token) => token.special === true || alsoSpecial.has(token.content),
  )
  return {
    names,
    added: new Set(file.added_tokens.map(({ id }) => id)),
    special: new Set(special.map(({ id }) => id)),
  }
}

/**
 * The exact bytes, by id, that each token writes in the middle of a text; `null` where there is no
 * such token or it is a special one. `visible` are special ones that are written all the same.
 */
export function tokenBytes(
  file: TokenizerFile,
  config: object,
  visible: readonly string[] = [],
): (Uint8Array | null)[] {
  const { names, added, special } = readVocabulary(file, config)
  const spell = createSpelling(file.decoder)
  return Array.from(names, (name, id) =>
    name === undefined || (special.has(id) && !visible.includes(name))
      ? null
      : spell(name, added.has(id)),
  )
}

function additionalSpecial(config: object): string[] {
  const listed = 'additional_special_tokens' in config ? config.additional_special_tokens : []
  const texts = Array.isArray(listed)
    ? listed.map((each: unknown) => (isRecord(each) ? each['content'] : each))
    : []
  return texts.filter((each) => typeof each === 'string')
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null
