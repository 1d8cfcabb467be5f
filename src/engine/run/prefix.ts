/** Conversations that nobody continues for now, kept so that the next one need not begin anew. */
import { memoryHere } from '../../device/capabilities.ts'
import type { Sequence } from '../decoder.ts'

/** A sequence and the tokens it took, by which it is found and could be made again. */
export interface Track {
  readonly sequence: Sequence
  readonly tokens: number[]
  /** Only prompts of the same one may see it. */
  readonly partition: string
}

/** How much may be kept; the last one is, however large, because it fitted while it was used. */
export interface PrefixBudget {
  sequences: number
  bytes: number
}

export interface PrefixCache {
  /** Tokens of this prompt that need not be computed, were it to begin now. */
  reach(prompt: readonly number[], partition: string, running: readonly Track[]): number
  /**
   * A track that has taken the beginning of the prompt and nothing else, out of those kept and those
   * still `running`; `null` where none has enough of it. The last token is never in it, because its
   * scores are needed.
   */
  take(
    prompt: readonly number[],
    partition: string,
    running: readonly Track[],
  ): Promise<Track | null>
  /** Gives a track that is done; the least recently used ones go. */
  keep(track: Track): void
  /** Gives everything up; whether there was anything. */
  clear(): boolean
}

/** Fewer shared tokens than these are computed sooner than copied. */
const WORTH_A_COPY = 8

interface Found {
  track: Track
  length: number
}

export function createPrefixCache(budget: PrefixBudget): PrefixCache {
  /** The most recently used last. */
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

/** How many tokens two begin with alike. */
export function shared(a: readonly number[], b: readonly number[]): number {
  const most = Math.min(a.length, b.length)
  let length = 0
  while (length < most && a[length] === b[length]) length += 1
  return length
}

const rest = ({ track, length }: Found): number => track.tokens.length - length

/** What a cut to this length would lose is soon computed again. */
const isMostOf = (length: number, { tokens }: Track): boolean =>
  (tokens.length - length) * 3 <= length

/** Whatever could be made of `b` can be made of `a`. */
const covers = (a: Track, b: Track): boolean =>
  a.partition === b.partition &&
  shared(a.tokens, b.tokens) === b.tokens.length &&
  a.sequence.reach(b.tokens.length) === b.tokens.length

/**
 * An eighth of the machine's memory, where browsers say how much there is; they do not say more than
 * 8 GiB, and some say nothing.
 */
export function prefixBudget(): PrefixBudget {
  return { sequences: 16, bytes: (memoryHere() ?? 4 * 2 ** 30) / 8 }
}
