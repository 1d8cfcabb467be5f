/** Lets answers read the logits of a forward pass, and settles their pending reads. */
import type { CandidateRequest, Candidates, Logits } from '../decoder.ts'
import { rejectRead, resolveRead, type Slot } from './slot.ts'

/** Result of a reader's `requestCandidates`. */
interface RequestOutcome {
  request: CandidateRequest
  /** Error of the reader's `requestCandidates`. */
  error?: unknown
}

const DEFAULT_REQUEST: CandidateRequest = { count: 1, temperature: 1 }

/**
 * Requests the candidates before the logits are computed, so that a token mask is computed in
 * parallel.
 */
export async function requestCandidates(
  { pendingRead }: Slot,
  drafted: readonly number[] = [],
): Promise<RequestOutcome> {
  try {
    return { request: (await pendingRead?.reader?.requestCandidates(drafted)) ?? DEFAULT_REQUEST }
  } catch (error) {
    return { request: DEFAULT_REQUEST, error }
  }
}

/**
 * Lets each answer read its row of logits. An error of a reader fails its own answer only. An error
 * of the decoder is thrown and concerns all answers.
 */
export async function readRows(
  slots: readonly Slot[],
  pendingOutcomes: readonly Promise<RequestOutcome>[],
  logits: Logits,
): Promise<void> {
  try {
    const outcomes = await Promise.all(pendingOutcomes)
    const candidates = await logits.top(outcomes.map((each) => each.request))
    for (const [index, slot] of slots.entries()) {
      const { error } = outcomes[index] as RequestOutcome
      if (error !== undefined) rejectRead(slot, error)
      else await readRow(slot, logits, index, candidates[index] as Candidates)
    }
  } finally {
    logits.release()
  }
}

/** Lets one answer read its row of logits, and settles its pending read. */
export async function readRow(
  slot: Slot,
  logits: Logits,
  index: number,
  candidates: Candidates,
): Promise<void> {
  let decoderFailure: { thrown: unknown } | null = null
  const row = async (): Promise<Float32Array> => {
    try {
      return await logits.row(index)
    } catch (thrown) {
      decoderFailure = { thrown }
      throw thrown
    }
  }
  try {
    await slot.pendingRead?.reader?.readLogits({ candidates, row })
    resolveRead(slot)
  } catch (thrown) {
    if (decoderFailure) throw thrown
    rejectRead(slot, thrown)
  }
}
