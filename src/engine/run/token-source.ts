/** Determines the tokens of an answer: forced ones, those of an interrupted run, or sampled ones. */
import type { TokenLogprob } from '../../types/index.ts'
import type { CandidateRequest } from '../decoder.ts'
import type { ConstraintState } from './constraint-state.ts'
import { certainDrafter, type Drafter } from './drafter.ts'
import type { Output } from './output.ts'
import type { SlotHandle } from './scheduler.ts'

interface TokenSourceOptions extends Pick<Output, 'sampler' | 'toLogprob'> {
  slot: SlotHandle
  constraintState: ConstraintState
  /** Drafter of the answer; `null` for no drafts. */
  drafter: Drafter | null
  /** First tokens of the answer, which an interrupted run has sampled. */
  resumeTokens: readonly number[]
  tokenLimit: number
}

interface NextToken {
  token: number
  /** `null` unless logprobs were requested and the token has text. */
  logprob: TokenLogprob | null
}

/** Resolves to the token at `index`. It is called for each index in order. */
type TokenSource = (index: number) => Promise<NextToken>

export function createTokenSource({
  slot,
  sampler,
  toLogprob,
  constraintState,
  drafter,
  resumeTokens,
  tokenLimit,
}: TokenSourceOptions): TokenSource {
  /** Tokens of the answer that the decoder has not computed yet. */
  const pending: number[] = []

  // A token mask is known for one token at a time, so constrained answers have no drafts.
  const sampledDrafter = (): Drafter | null => (constraintState.isUnconstrained ? drafter : null)

  /**
   * Computes the logits of the next token. Resolves to that token, which is sampled if unknown. A
   * known token may have others `following` it, whose logits are computed in the same run.
   */
  async function compute(
    knownToken: number | undefined,
    index: number,
    following: readonly number[],
  ): Promise<NextToken> {
    let token = knownToken
    let logprob: TokenLogprob | null = null
    let candidateRequest: CandidateRequest | undefined
    await slot.computeNext(pending.splice(0), {
      requestCandidates: async (drafted) => {
        const mask = knownToken === undefined ? constraintState.tokenMask() : null
        const request = sampler.ask(mask, drafted)
        if (drafted.length === 0) candidateRequest = request
        return request
      },
      readLogits: async ({ candidates, row }) => {
        const rowLogits = await (toLogprob && row())
        token ??= await sampler.choose((candidateRequest ??= sampler.ask(null)), candidates, row)
        logprob = (rowLogits && toLogprob?.(rowLogits, token)) ?? null
      },
      drafter:
        knownToken === undefined ? sampledDrafter() : certainDrafter([knownToken, ...following]),
      maxDraftTokens: tokenLimit - index - 1,
    })
    return { token: token as number, logprob }
  }

  /** Returns the known tokens after a known one: forced ones, or those of an interrupted run. */
  const followingTokens = (forcedToken: number | undefined, index: number): readonly number[] =>
    forcedToken === undefined ? resumeTokens.slice(index + 1) : constraintState.forcedTokens

  return async (index) => {
    const forcedToken = constraintState.forcedTokens.shift()
    const resumedToken = resumeTokens[index]
    const knownToken = forcedToken ?? resumedToken
    const next =
      knownToken !== undefined && !toLogprob
        ? { token: knownToken, logprob: null }
        : await compute(knownToken, index, followingTokens(forcedToken, index))
    if (forcedToken === undefined) {
      if (resumedToken !== undefined) sampler.skip()
      constraintState.accept(next.token)
    }
    sampler.accept(next.token)
    drafter?.append(next.token)
    pending.push(next.token)
    return next
  }
}
