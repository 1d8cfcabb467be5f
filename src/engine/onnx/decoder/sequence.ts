/** One conversation of a decoder. */
import { InoriginError } from '../../../error.ts'
import type { Banks } from './banks.ts'
import type { Sequence } from '../../decoder.ts'
import type { Forward, Memory } from './forward.ts'
import type { Scores } from './scores.ts'

export interface SequenceOptions {
  forward: Forward
  banks: Banks
  scores: Scores
  /** Does something now, or after the run that is on its way. */
  whenIdle(task: () => void): void
  /** Whether a run can be told for how many positions scores are wanted. */
  keepsSome: boolean
  /** Whether only marked lengths can be had again. */
  marked: boolean
  contextWindow: number
  /** Of another conversation that began with the same tokens. */
  open(memory: Memory): Sequence
  onClose(): void
}

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
    throw new InoriginError('internal', `${length} tokens are not what can be gone back to.`)
  }

  const extend: Sequence['extend'] = async (tokens) => {
    if (tokens.length > 0) await run(tokens, 0)
  }

  const predict: Sequence['predict'] = async (tokens, rows = 1) => {
    if (!keepsSome && tokens.length > rows) {
      // Scores of all positions would be computed and kept to use those of the last.
      await extend(tokens.slice(0, -rows))
      return predict(tokens.slice(-rows), rows)
    }
    const tensor = await run(tokens, rows)
    if (!tensor) throw new InoriginError('internal', 'The model gave no scores.')
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

/** A run past the end of the context would compute with positions that the model does not know. */
export function checkRoom(length: number, contextWindow: number): void {
  if (length <= contextWindow) return
  const what = `${length} tokens do not fit in a context of ${contextWindow}.`
  throw new InoriginError('internal', what)
}
