/** One sequence of a decoder. */
import { InoriginError } from '../../../error.ts'
import type { KvPool, KvRow } from './kv-pool.ts'
import type { Sequence } from '../../decoder.ts'
import type { ForwardPass, SequenceCache } from './forward.ts'
import type { LogitsWrapper } from './logits.ts'

interface SequenceOptions {
  forwardPass: ForwardPass
  kvPool: KvPool
  logitsWrapper: LogitsWrapper
  /** Calls a task now, or after the run that is in progress. */
  whenIdle(task: () => void): void
  /** `true` if a run can compute the logits of only some positions. */
  selectsLogits: boolean
  /** `true` if the sequence can be truncated only to its checkpoints. */
  hasStates: boolean
  /** Maximum number of tokens. */
  contextWindow: number
  /** Returns the largest number of tokens in the next run. */
  maxChunkTokens(kvRow: KvRow): number
  /** Creates a sequence for a forked KV cache. */
  open(cache: SequenceCache): Sequence
  /** Callback of the first `close`. */
  onClose(): void
}

/** Creates a sequence over a KV cache, which it owns from now on. */
export function createSequence(cache: SequenceCache, options: SequenceOptions): Sequence {
  const { forwardPass, kvPool, hasStates, contextWindow } = options
  const { kvRow, history } = cache
  let closed = false

  const run = (tokens: readonly number[], keep: number): ReturnType<ForwardPass> => {
    assertFits(kvRow.length + tokens.length, contextWindow)
    return forwardPass([{ cache, tokens }], keep)
  }

  const reusableLength = (length: number): number =>
    hasStates ? history.restorableLength(length) : Math.min(length, kvRow.length)

  const assertReusable = (length: number): void => {
    if (length === reusableLength(length)) return
    throw new InoriginError('internal', `The sequence cannot be cut to ${length} tokens.`)
  }

  return {
    get length() {
      return kvRow.length
    },
    get bytes() {
      return kvPool.bytes(kvRow) + history.bytes
    },
    get maxChunkTokens() {
      return options.maxChunkTokens(kvRow)
    },
    ...createRuns(run, options),
    reusableLength,
    checkpoint: () => history.save(),
    async truncate(length) {
      assertReusable(length)
      history.restore(length)
      kvRow.length = length
    },
    async fork(length) {
      assertReusable(length)
      return options.open({
        kvRow: kvPool.fork(kvRow, length),
        history: history.fork(length),
        positions: cache.positions?.fork(length),
      })
    },
    close() {
      if (closed) return
      closed = true
      options.onClose()
      options.whenIdle(() => {
        kvPool.remove(kvRow)
        history.close()
      })
    },
  }
}

/** Creates the calls that append tokens, with `run`, which computes the logits of the last `keep`. */
function createRuns(
  run: (tokens: readonly number[], keep: number) => ReturnType<ForwardPass>,
  { logitsWrapper, selectsLogits }: Pick<SequenceOptions, 'logitsWrapper' | 'selectsLogits'>,
): Pick<Sequence, 'extend' | 'forward'> {
  const extend: Sequence['extend'] = async (tokens) => {
    if (tokens.length > 0) await run(tokens, 0)
  }

  const forward: Sequence['forward'] = async (tokens, rows = 1) => {
    if (!selectsLogits && tokens.length > rows) {
      // Such a run would compute and store the logits of all positions only to use the last ones.
      await extend(tokens.slice(0, -rows))
      return forward(tokens.slice(-rows), rows)
    }
    return logitsWrapper.wrap(await run(tokens, rows), [...Array(rows).keys()])
  }
  return { extend, forward }
}

/** Throws `internal` if a length exceeds the context window; the model knows no later positions. */
export function assertFits(length: number, contextWindow: number): void {
  if (length <= contextWindow) return
  const what = `${length} tokens exceed the context window of ${contextWindow}.`
  throw new InoriginError('internal', what)
}
