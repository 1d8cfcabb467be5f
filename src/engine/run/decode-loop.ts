/** Decode loop of one answer: samples token after token and yields text once it is certain. */
import type { TokenLogprob } from '../../types/index.ts'
import type {
  GenerationResult,
  GenerateOptions,
  TextChunk,
  Prompt,
  GenerationUpdate,
} from '../engine.ts'
import type { CandidateRequest } from '../decoder.ts'
import { withoutImageRows } from '../images.ts'
import { createDrafter } from './drafter.ts'
import type { Output } from './output.ts'
import { createConstraintState, type ConstraintStateOptions } from './constraint-state.ts'
import type { Scheduler } from './scheduler.ts'

/** Dependencies and limits that all answers of a model share. */
export interface DecodeLoopSetup extends Omit<ConstraintStateOptions, 'signal'> {
  scheduler: Scheduler
  endTokens: ReadonlySet<number>
  contextWindow: number
  /**
   * `true` to draft tokens, for a device that computes several tokens in little more time than one.
   */
  drafts: boolean
}

/**
 * Yields text once later tokens cannot change it. Returns how the answer ended. Throws `aborted` as
 * soon as the signal aborts.
 */
export async function* runDecodeLoop(
  setup: DecodeLoopSetup,
  { sampler, detokenizer, toLogprob }: Output,
  prompt: Prompt,
  { maxTokens, signal, constraint, resumeTokens = [], partition = '', onStart }: GenerateOptions,
): AsyncGenerator<TextChunk, GenerationResult, GenerationUpdate | undefined> {
  const tokenLimit = Math.min(maxTokens, setup.contextWindow - prompt.tokens.length)
  const constraintState = createConstraintState({ ...setup, signal })
  const { forcedTokens } = constraintState
  const slot = setup.scheduler.add({
    prompt,
    partition,
    signal,
    onStart: (started) => onStart?.(started),
  })
  const drafter = setup.drafts && !toLogprob ? createDrafter(withoutImageRows(prompt.tokens)) : null
  /** Tokens of the answer that the decoder has not computed yet. */
  const pending: number[] = []
  const buffer = createChunkBuffer(toLogprob !== undefined)
  let completionTokens = 0

  /** Resolves to the next token: a forced one, that of an interrupted run, or a sampled one. */
  const nextToken = async (): Promise<number> => {
    const forcedToken = forcedTokens.shift()
    const resumedToken = resumeTokens[completionTokens]
    const knownToken = forcedToken ?? resumedToken
    const token = knownToken !== undefined && !toLogprob ? knownToken : await compute(knownToken)
    if (forcedToken !== undefined) return token
    if (resumedToken !== undefined) sampler.skip()
    constraintState.accept(token)
    return token
  }

  /** Computes the logits of the next token. Resolves to that token, which is sampled if unknown. */
  const compute = async (knownToken: number | undefined): Promise<number> => {
    let token = knownToken
    let candidateRequest: CandidateRequest | undefined
    await slot.computeNext(pending.splice(0), {
      requestCandidates: async (drafted) => {
        const mask = knownToken === undefined ? await constraintState.tokenMask() : null
        const request = sampler.ask(mask, drafted)
        if (drafted.length === 0) candidateRequest = request
        return request
      },
      readLogits: async ({ candidates, row }) => {
        const rowLogits = await (toLogprob && row())
        token ??= await sampler.choose((candidateRequest ??= sampler.ask(null)), candidates, row)
        const tokenLogprob = rowLogits && toLogprob?.(rowLogits, token)
        if (tokenLogprob) buffer.logprobs.push(tokenLogprob)
      },
      // A token mask is known for one token at a time, so constrained answers have no drafts.
      drafter: constraintState.isUnconstrained && knownToken === undefined ? drafter : null,
      maxDraftTokens: tokenLimit - completionTokens - 1,
    })
    return token as number
  }

  try {
    if (constraint) await constraintState.setConstraint(constraint)
    // Otherwise the first `computeNext` calls `onStart`.
    if (forcedTokens.length > 0 || tokenLimit < 1) await slot.start()
    let reason: GenerationResult['reason'] = 'length'
    while (completionTokens < tokenLimit) {
      const token = await nextToken()
      sampler.accept(token)
      drafter?.append(token)
      completionTokens += 1
      buffer.tokenIds.push(token)
      if (setup.endTokens.has(token)) {
        reason = 'stop'
        break
      }
      pending.push(token)
      buffer.text += detokenizer.push(token)
      if (buffer.text === '' || forcedTokens.length > 0 || completionTokens === tokenLimit) continue
      const update = yield buffer.take()
      if (update?.append || update?.constraint) detokenizer.drop()
      if (update?.constraint !== undefined) await constraintState.setConstraint(null)
      if (update?.append) constraintState.forceText(update.append)
      if (update?.constraint) await constraintState.setConstraint(update.constraint)
    }
    // Bytes of an incomplete character are dropped, but the logprobs of their tokens are yielded.
    if (buffer.text !== '' || buffer.logprobs.length > 0) yield buffer.take()
    return { reason, completionTokens }
  } finally {
    slot.release()
    constraintState.close()
  }
}

/** Text that has not been yielded yet, and its tokens. */
interface ChunkBuffer {
  text: string
  readonly tokenIds: number[]
  readonly logprobs: TokenLogprob[]
  /** Returns all of it as a chunk, and empties the buffer. */
  take(): TextChunk
}

function createChunkBuffer(hasLogprobs: boolean): ChunkBuffer {
  const buffer: ChunkBuffer = {
    text: '',
    tokenIds: [],
    logprobs: [],
    take() {
      const { text } = buffer
      const tokenIds = buffer.tokenIds.splice(0)
      const logprobs = buffer.logprobs.splice(0)
      buffer.text = ''
      return { text, tokens: tokenIds.length, tokenIds, ...(hasLogprobs && { logprobs }) }
    },
  }
  return buffer
}
