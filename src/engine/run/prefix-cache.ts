/** Keeps sequences of finished answers, so that later prompts reuse their KV cache. */
import { getDeviceMemoryBytes } from '../../device/capabilities.ts'
import type { Sequence } from '../decoder.ts'
import { commonPrefixLength } from '../text/chat-template.ts'

/** A sequence and the tokens in it, by which it is found and can be recomputed. */
export interface SequenceEntry {
  readonly sequence: Sequence
  readonly tokens: number[]
  /** Name of a part of the cache. Only prompts with the same name may reuse the sequence. */
  readonly partition: string
}

/** Limits of the prefix cache. The most recent sequence always stays, whatever its size. */
export interface PrefixCacheBudget {
  sequences: number
  /** Memory in bytes. */
  bytes: number
}

/**
 * Returns limits of 16 sequences and an eighth of the device memory, which are guesses. Browsers
 * report at most 8 GiB. If they report nothing, 4 GiB are assumed.
 */
export const prefixCacheBudget = (): PrefixCacheBudget => ({
  sequences: 16,
  bytes: (getDeviceMemoryBytes() ?? 4 * 2 ** 30) / 8,
})

/** Limits of what a prompt may reuse. */
export interface ReuseLimits {
  /** `true` if only long sequences can be used; `false` if only the others can. */
  isLong: boolean
  /** Largest number of tokens of the prompt that may remain to be computed. */
  maxRest: number
}

const NO_LIMITS: ReuseLimits = { isLong: false, maxRest: Infinity }

/** Sequences of finished answers, for reuse by later prompts. */
export class PrefixCache {
  readonly #budget: PrefixCacheBudget
  /** Cached entries, the most recently used last. */
  #entries: SequenceEntry[] = []

  constructor(budget: PrefixCacheBudget) {
    this.#budget = budget
  }

  /** Returns how many tokens of the prompt `acquire` would find, without changing the cache. */
  hitLength(
    prompt: readonly number[],
    partition: string,
    running: SequenceEntry[],
    limits = NO_LIMITS,
  ): number {
    return findHit([...this.#entries, ...running], prompt, partition, limits)?.length ?? 0
  }

  /**
   * Resolves to an entry with the longest prefix of the prompt, from the cache or from `running`
   * ones. Resolves to `null` if no prefix is long enough. The prefix never includes the last token
   * of the prompt, whose logits are needed.
   */
  async acquire(
    prompt: readonly number[],
    partition: string,
    running: SequenceEntry[],
    limits = NO_LIMITS,
  ): Promise<SequenceEntry | null> {
    const hit = findHit([...this.#entries, ...running], prompt, partition, limits)
    if (!hit) return null
    const { length } = hit
    const { sequence } = hit.entry
    const tokens = hit.entry.tokens.slice(0, length)
    const others = this.#entries.filter((other) => other !== hit.entry)
    const isCached = others.length < this.#entries.length
    if (!isCached || !isMostOf(length, hit.entry)) {
      if (isCached) this.#entries = [...others, hit.entry]
      return { sequence: await sequence.fork(length), tokens, partition }
    }
    this.#entries = others
    try {
      await sequence.truncate(length)
    } catch (thrown) {
      sequence.close()
      throw thrown
    }
    return { sequence, tokens, partition }
  }

  /** Adds the entry of a finished answer. Evicts the least recently used entries. */
  insert(entry: SequenceEntry): void {
    const entries = this.#entries
    if (entry.tokens.length === 0 || entries.some((other) => replaces(other, entry)))
      return entry.sequence.close()
    const replaced = entries.filter((other) => replaces(entry, other))
    this.#entries = [...entries.filter((other) => !replaced.includes(other)), entry]
    for (const { sequence } of replaced) sequence.close()
    this.#evict()
  }

  /** Evicts all entries. Returns `true` if there were any. */
  clear(): boolean {
    const cleared = this.#entries.splice(0)
    for (const { sequence } of cleared) sequence.close()
    return cleared.length > 0
  }

  #evict(): void {
    const entries = this.#entries
    let bytes = entries.reduce((sum, { sequence }) => sum + sequence.bytes, 0)
    while (
      entries.length > this.#budget.sequences ||
      (bytes > this.#budget.bytes && entries.length > 1)
    ) {
      const { sequence } = entries.shift() as SequenceEntry
      bytes -= sequence.bytes
      sequence.close()
    }
  }
}

/** An entry and the number of its tokens to reuse. */
interface PrefixHit {
  entry: SequenceEntry
  length: number
}

/** Shortest prefix in tokens that is worth a copy; a guess. Shorter ones are computed again. */
const MIN_COPY_TOKENS = 8

/** Returns the entry of the partition with the longest prefix that is worth its use. */
function findHit(
  entries: readonly SequenceEntry[],
  prompt: readonly number[],
  partition: string,
  { isLong, maxRest }: ReuseLimits,
): PrefixHit | null {
  let best: PrefixHit | null = null
  for (const entry of entries) {
    if (entry.partition !== partition || isLongEntry(entry) !== isLong) continue
    const longest = Math.min(commonPrefixLength(entry.tokens, prompt), prompt.length - 1)
    const length = entry.sequence.reusableLength(longest)
    if (length < 1 || prompt.length - length > maxRest) continue
    if (!isMostOf(length, entry) && length < MIN_COPY_TOKENS) continue
    const better = best
      ? length - best.length || unusedTokens(best) - unusedTokens({ entry, length })
      : 1
    if (better > 0) best = { entry, length }
  }
  return best
}

const isLongEntry = ({ sequence }: SequenceEntry): boolean => sequence.isLong ?? false

const unusedTokens = ({ entry, length }: PrefixHit): number => entry.tokens.length - length

/** Returns `true` if a truncation to `length` loses so little that it is cheaper than a copy. */
const isMostOf = (length: number, { tokens }: SequenceEntry): boolean =>
  (tokens.length - length) * 3 <= length

/** Returns `true` if `a` can replace `b` for every prompt. */
const replaces = (a: SequenceEntry, b: SequenceEntry): boolean =>
  a.partition === b.partition &&
  isLongEntry(a) === isLongEntry(b) &&
  commonPrefixLength(a.tokens, b.tokens) === b.tokens.length &&
  a.sequence.reusableLength(b.tokens.length) === b.tokens.length
