/**
 * The prefix cache: keeps sequences of finished answers, so that later prompts reuse their KV
 * cache.
 */
import { getDeviceMemoryBytes } from '../../device/capabilities.ts'
import type { Sequence } from '../decoder.ts'

/** A sequence and the tokens in it, by which it is found and can be recomputed. */
export interface Track {
  readonly sequence: Sequence
  readonly tokens: number[]
  /** Name of a part of the cache. Only prompts with the same name may reuse the sequence. */
  readonly partition: string
}

/** Limits of the prefix cache. The most recent sequence always stays, whatever its size. */
export interface PrefixBudget {
  sequences: number
  /** Memory in bytes. */
  bytes: number
}

/** Sequences of finished answers, for reuse by later prompts. */
export interface PrefixCache {
  /** Returns how many tokens of the prompt `take` would find, without changing the cache. */
  reach(prompt: readonly number[], partition: string, running: readonly Track[]): number
  /**
   * Resolves to a track with the longest prefix of the prompt, from the cache or from `running`
   * ones. Resolves to `null` if no prefix is long enough. The prefix never includes the last token
   * of the prompt, whose logits are needed.
   */
  take(
    prompt: readonly number[],
    partition: string,
    running: readonly Track[],
  ): Promise<Track | null>
  /** Adds the track of a finished answer. Evicts the least recently used tracks. */
  keep(track: Track): void
  /** Evicts all tracks. Returns `true` if there were any. */
  clear(): boolean
}

/** Shortest prefix in tokens that is worth a copy. Shorter ones are faster to compute. */
const WORTH_A_COPY = 8

/** A track and the number of its tokens to reuse. */
interface Found {
  track: Track
  length: number
}

/** Creates an empty prefix cache. */
export function createPrefixCache(budget: PrefixBudget): PrefixCache {
  /** Cached tracks, the most recently used last. */
  let kept: Track[] = []

  const find = (
    prompt: readonly number[],
    partition: string,
    running: readonly Track[],
  ): Found | null => {
    let best: Found | null = null
    for (const track of [...kept, ...running]) {
      if (track.partition !== partition) continue
      const most = Math.min(shared(track.tokens, prompt), prompt.length - 1)
      const length = track.sequence.reach(most)
      if (length < 1 || (!isMostOf(length, track) && length < WORTH_A_COPY)) continue
      const better = best ? length - best.length || rest(best) - rest({ track, length }) : 1
      if (better > 0) best = { track, length }
    }
    return best
  }

  const evict = (): void => {
    let bytes = kept.reduce((sum, { sequence }) => sum + sequence.bytes, 0)
    while (kept.length > budget.sequences || (bytes > budget.bytes && kept.length > 1)) {
      const [oldest] = kept.splice(0, 1)
      bytes -= oldest?.sequence.bytes ?? 0
      oldest?.sequence.close()
    }
  }

  const take: PrefixCache['take'] = async (prompt, partition, running) => {
    const found = find(prompt, partition, running)
    if (!found) return null
    const { track, length } = found
    const tokens = track.tokens.slice(0, length)
    if (!kept.includes(track)) {
      return { sequence: await track.sequence.fork(length), tokens, partition }
    }
    kept = kept.filter((each) => each !== track)
    if (!isMostOf(length, track)) {
      kept.push(track)
      return { sequence: await track.sequence.fork(length), tokens, partition }
    }
    try {
      await track.sequence.cut(length)
    } catch (thrown) {
      track.sequence.close()
      throw thrown
    }
    return { sequence: track.sequence, tokens, partition }
  }

  const keep: PrefixCache['keep'] = (track) => {
    if (track.tokens.length === 0 || kept.some((each) => covers(each, track))) {
      track.sequence.close()
      return
    }
    const needless = kept.filter((each) => covers(track, each))
    kept = [...kept.filter((each) => !needless.includes(each)), track]
    for (const { sequence } of needless) sequence.close()
    evict()
  }

  const clear = (): boolean => {
    const had = kept.length > 0
    for (const { sequence } of kept.splice(0)) sequence.close()
    return had
  }
  return {
    reach: (...prompt) => find(...prompt)?.length ?? 0,
    take,
    keep,
    clear,
  }
}

/** Returns the length of the common prefix. */
export function shared(a: readonly number[], b: readonly number[]): number {
  const most = Math.min(a.length, b.length)
  let length = 0
  while (length < most && a[length] === b[length]) length += 1
  return length
}

const rest = ({ track, length }: Found): number => track.tokens.length - length

/** Returns `true` if a cut to `length` loses so little that it is cheaper than a copy. */
const isMostOf = (length: number, { tokens }: Track): boolean =>
  (tokens.length - length) * 3 <= length

/** Returns `true` if `a` can replace `b` for every prompt. */
const covers = (a: Track, b: Track): boolean =>
  a.partition === b.partition &&
  shared(a.tokens, b.tokens) === b.tokens.length &&
  a.sequence.reach(b.tokens.length) === b.tokens.length

/**
 * Returns limits of 16 sequences and an eighth of the device memory. Browsers report at most 8 GiB.
 * If they report nothing, 4 GiB are assumed.
 */
export function prefixBudget(): PrefixBudget {
  return { sequences: 16, bytes: (getDeviceMemoryBytes() ?? 4 * 2 ** 30) / 8 }
}
