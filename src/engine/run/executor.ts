/** Runs one forward pass of the decoder for a batch and lets the answers read its logits. */
import type { CandidateRequest, Candidates, Decoder, Logits } from '../decoder.ts'
import { type Draft, rejectRead, resolveRead, type Slot } from './slot.ts'
import type { SequenceEntry } from './prefix-cache.ts'
import type { DraftSizer } from './draft-sizer.ts'

/** An answer whose prefill has started. */
export interface ActiveSlot extends Slot {
  entry: SequenceEntry
}

/**
 * Computes the first `count` pending tokens, at most a chunk. Reads the logits if no tokens are
 * left.
 */
export async function runPrefillChunk(slot: ActiveSlot, count: number): Promise<void> {
  const { entry, pending } = slot
  const tokens = pending.slice(0, count)
  if (count < pending.length) {
    await entry.sequence.extend(tokens)
    commitTokens(slot, count)
    return
  }
  const pendingOutcomes = [toOutcome(slot, [])]
  const logits = await entry.sequence.forward(tokens)
  commitTokens(slot, count)
  await readRows([slot], pendingOutcomes, logits)
}

/** Runs a decode step of the one pending token of each answer, and reads the logits. */
export async function runDecodeStep(decoder: Decoder, slots: readonly ActiveSlot[]): Promise<void> {
  const inputs = slots.map(({ entry, pending }) => ({
    sequence: entry.sequence,
    token: pending[0] as number,
  }))
  const pendingOutcomes = slots.map((slot) => toOutcome(slot, []))
  const logits = await decoder.step(inputs)
  for (const slot of slots) commitTokens(slot, 1)
  await readRows(slots, pendingOutcomes, logits)
}

/**
 * Runs a decode step of the one pending token, with draft tokens after it if they pay off. Reads
 * the logits of the pending token. Keeps the logits of the drafts until the answer verifies them.
 */
export async function runDraftStep(
  decoder: Decoder,
  slot: ActiveSlot,
  draftSizer: DraftSizer,
): Promise<void> {
  const { drafter = null, maxDraftTokens = 0 } = slot.pendingRead?.reader ?? {}
  const drafted =
    drafter?.draft(draftSizer.draftLength(drafter.acceptanceRate, maxDraftTokens)) ?? []
  const start = performance.now()
  if (drafted.length === 0) {
    await runDecodeStep(decoder, [slot])
    return draftSizer.record(0, performance.now() - start)
  }
  const tokens = [...slot.pending, ...drafted]
  const pendingOutcomes = tokens.map((_, index) => toOutcome(slot, drafted.slice(0, index)))
  const logits = await slot.entry.sequence.forward(tokens, tokens.length)
  commitTokens(slot, 1)
  slot.draft = { tokens: drafted, candidates: [], logits }
  const outcomes = await Promise.all(pendingOutcomes)
  slot.draft.candidates = await logits.top(outcomes.map((each) => each.request))
  draftSizer.record(drafted.length, performance.now() - start)
  const [first] = outcomes
  if (first?.error === undefined) await readDraftRow(slot, slot.draft)
  else rejectRead(slot, first.error)
}

/**
 * Compares the pending token with the draft. If they match, reads the logits after it and resolves
 * to `true`. Otherwise removes the draft.
 */
export async function verifyDraft(slot: ActiveSlot, draft: Draft): Promise<boolean> {
  const [next] = draft.tokens
  // Without a drafter, the request differs from the one that was made for the draft.
  if (!slot.pendingRead?.reader?.drafter || slot.pending[0] !== next) {
    await discardDraft(slot)
    return false
  }
  draft.tokens.shift()
  commitTokens(slot, 1)
  await readDraftRow(slot, draft)
  return true
}

/** Removes the draft from the sequence. */
export async function discardDraft(slot: ActiveSlot): Promise<void> {
  const drafted = slot.draft?.tokens.length ?? 0
  slot.draft?.logits.release()
  slot.draft = null
  if (drafted > 0) await slot.entry.sequence.truncate(slot.entry.tokens.length)
}

/** Lets the answer read the stored logits after its last accepted draft token. */
function readDraftRow(slot: ActiveSlot, { candidates, logits, tokens }: Draft): Promise<void> {
  const index = candidates.length - 1 - tokens.length
  return readRow(slot, logits, index, candidates[index] as Candidates)
}

/** Moves the first `count` pending tokens to the computed ones. */
function commitTokens({ entry, pending }: ActiveSlot, count: number): void {
  entry.tokens.push(...pending.splice(0, count))
}

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
async function toOutcome(
  { pendingRead }: Slot,
  drafted: readonly number[],
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
async function readRows(
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
async function readRow(
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
