/** Lists the tokens of a tokenizer by id: their names, their bytes, and which ones are special. */
import { isObject } from '../../values/objects.ts'
import { createTokenSpeller } from './decoder-stages.ts'
import type { TokenizerFile } from './tokenizer-file.ts'

/** Tokens of a tokenizer. */
interface Vocabulary {
  /**
   * Names of the tokens by id, as the tokenizer writes them before decoding. Unused ids are
   * `undefined`.
   */
  readonly names: readonly (string | undefined)[]
  /** Ids of added tokens, which stand for exactly their name. */
  readonly added: ReadonlySet<number>
  /** Ids of the added tokens that are special: they structure a text and are not part of it. */
  readonly special: ReadonlySet<number>
}

/** Reads the tokens of a tokenizer. `config` is tokenizer_config.json. */
export function readVocabulary(file: TokenizerFile, config: object): Vocabulary {
  const names: (string | undefined)[] = []
  const { vocab } = file.model
  if (Array.isArray(vocab)) vocab.forEach(([piece], id) => (names[id] = piece))
  // With 150,000 names, a list of entries would take 120 ms and this takes 40 ms.
  else for (const piece of Object.keys(vocab)) names[vocab[piece] as number] = piece
  for (const { id, content } of file.added_tokens) names[id] = content

  const additionalSpecialTexts = new Set(readAdditionalSpecial(config))
  const special = file.added_tokens.filter(
    (token) => token.special === true || additionalSpecialTexts.has(token.content),
  )
  return {
    names,
    added: new Set(file.added_tokens.map(({ id }) => id)),
    special: new Set(special.map(({ id }) => id)),
  }
}

/**
 * Returns the exact bytes, by id, that each token adds in the middle of a text. They are `null` for
 * unused ids and for special tokens, except the `visible` ones.
 */
export function listTokenBytes(
  file: TokenizerFile,
  config: object,
  visible: readonly string[] = [],
): (Uint8Array | null)[] {
  const vocabulary = readVocabulary(file, config)
  return Array.from(vocabulary.names, createTokenReader(file, vocabulary, visible))
}

/** Tokens that are read in one task. 5,000 byte-level tokens of Qwen3 take 14 ms at most. */
const TOKENS_PER_TASK = 5_000

/** Lists the same bytes of a vocabulary, and calls `nextTask` between two parts of them. */
export async function listTokenBytesInTasks(
  file: TokenizerFile,
  vocabulary: Vocabulary,
  nextTask: () => Promise<void>,
): Promise<(Uint8Array | null)[]> {
  const read = createTokenReader(file, vocabulary, [])
  const bytes: (Uint8Array | null)[] = []
  for (let id = 0; id < vocabulary.names.length; id += 1) {
    if (id % TOKENS_PER_TASK === 0) await nextTask()
    bytes.push(read(vocabulary.names[id], id))
  }
  return bytes
}

/** Returns a function that returns the bytes of a token by its name and id. */
function createTokenReader(
  file: TokenizerFile,
  { added, special }: Vocabulary,
  visible: readonly string[],
) {
  const spellToken = createTokenSpeller(file.decoder)
  return (name: string | undefined, id: number): Uint8Array | null =>
    name === undefined || (special.has(id) && !visible.includes(name))
      ? null
      : spellToken(name, added.has(id))
}

/** Returns the texts of `additional_special_tokens`. */
function readAdditionalSpecial(config: object): string[] {
  const listed = 'additional_special_tokens' in config ? config.additional_special_tokens : []
  const texts = Array.isArray(listed)
    ? listed.map((each: unknown) => (isObject(each) ? each['content'] : each))
    : []
  return texts.filter((each) => typeof each === 'string')
}
