/** One sequence of a decoder. */
import { InoriginError } from '../../../error.ts'
import type { Banks } from './banks.ts'
import type { Sequence } from '../../decoder.ts'
import type { Forward, Memory } from './forward.ts'
import type { Scores } from './scores.ts'

export interface SequenceOptions {
  forward: Forward
  banks: Banks
  scores: Scores
  /** Calls a task now, or after the run that is in progress. */
  whenIdle(task: () => void): void
  /** `true` if a run can compute the logits of only some positions. */
  keepsSome: boolean
  /** `true` if the sequence can be cut only to marked lengths. */
  marked: boolean
  /** Maximum number of tokens. */
  contextWindow: number
  /** Creates a sequence for a forked KV cache. */
  open(memory: Memory): Sequence
  /** Callback of the first `close`. */
  onClose(): void
}

/** Creates a sequence over a KV cache, which it owns from now on. */
export function createSequence(memory: Memory, options: SequenceOptions): Sequence {
  const { forward, banks, scores, keepsSome, marked, contextWindow } = options
  const { seat, history } = memory
  let closed = false

  const run = (tokens: readonly number[], keep: number): ReturnType<Forward> => {
    checkRoom(seat.length + tokens.length, contextWindow)
    return forward([{ memory, tokens }], keep)
  }

  const reach = (length: number): number =>
    marked ? history.reach(length) : Math.min(length, seat.length)

  const checkReach = (length: number): void => {
    if (length === reach(length)) return
    throw new InoriginError('internal', `The sequence cannot be cut to ${length} tokens.`)
  }

  const extend: Sequence['extend'] = async (tokens) => {
    if (tokens.length > 0) await run(tokens, 0)
  }

  const predict: Sequence['predict'] = async (tokens, rows = 1) => {
    if (!keepsSome && tokens.length > rows) {
      // Such a run would compute and store the logits of all positions only to use the last ones.
      await extend(tokens.slice(0, -rows))
      return predict(tokens.slice(-rows), rows)
    }
    const tensor = await run(tokens, rows)
    if (!tensor) throw new InoriginError('internal', 'The model returned no logits.')
    return scores.of(
      tensor,
      Array.from({ length: rows }, (_, row) => row),
    )
  }

  return {
    get length() {
      return seat.length
    },
    get bytes() {
      return banks.bytes(seat) + history.bytes
    },
    extend,
    predict,
    reach,
    mark: () => history.mark(),
    async cut(length) {
      checkReach(length)
      history.cut(length)
      seat.length = length
    },
    async fork(length) {
      checkReach(length)
      return options.open({ seat: banks.fork(seat, length), history: history.fork(length) })
    },
    close() {
      if (closed) return
      closed = true
      options.onClose()
      options.whenIdle(() => {
        banks.leave(seat)
        history.close()
      })
    },
  }
}

/** Throws `internal` if a length exceeds the context window; the model knows no later positions. */
export function checkRoom(length: number, contextWindow: number): void {
  if (length <= contextWindow) return
  const what = `${length} tokens exceed the context window of ${contextWindow}.`
  throw new InoriginError('internal', what)
}
