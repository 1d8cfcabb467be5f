/**
 * Finds out whether captured runs compute what others do. The runtime has kernels that it cannot capture, which it
 * says in the first run, and a driver may compute something else when commands come again.
 */
import { InoriginError } from '../../../error.ts'
import type { Decoder, Sequence } from '../../decoder.ts'

/** Two tokens. Every vocabulary has these ids. */
const [FIRST, SECOND] = [0, 1] as const

/** Largest difference of a logit, as a part of the largest logit; a guess. SwiftShader's is 0. */
const MAX_DIFFERENCE = 1e-3

/**
 * Resolves to `true` if the logits after two tokens are those of plain runs in one that is recorded and in one that is
 * repeated. `setCaptures` says whether the next runs are captured. Rejects if the device is lost or out of memory.
 */
export async function computesCaptured(
  decoder: Pick<Decoder, 'open'>,
  setCaptures: (captures: boolean) => void,
): Promise<boolean> {
  const sequence = decoder.open()
  const rowAfter = async (token: number, captures: boolean): Promise<Float32Array> => {
    setCaptures(captures)
    await sequence.truncate(1)
    return takeRow(sequence, token)
  }
  try {
    setCaptures(false)
    await takeRow(sequence, FIRST)
    const expected = [await rowAfter(FIRST, false), await rowAfter(SECOND, false)]
    // The second run repeats the first one with another token, so that its logits are not those that are there.
    const captured = [await rowAfter(FIRST, true), await rowAfter(SECOND, true)]
    return captured.every((row, index) => areClose(row, expected[index] ?? row))
  } catch (thrown) {
    const error = InoriginError.from(thrown)
    if (error.code === 'device_lost' || error.code === 'out_of_memory') throw error
    return false
  } finally {
    sequence.close()
  }
}

async function takeRow(sequence: Sequence, token: number): Promise<Float32Array> {
  const logits = await sequence.forward([token])
  try {
    return (await logits.row(0)).slice()
  } finally {
    logits.release()
  }
}

function areClose(row: Float32Array, expected: Float32Array): boolean {
  const largest = expected.reduce((most, logit) => Math.max(most, Math.abs(logit)), 0)
  return row.every((logit, index) => {
    const wanted = expected[index] ?? Number.NaN
    return Object.is(logit, wanted) || Math.abs(logit - wanted) <= MAX_DIFFERENCE * largest
  })
}
