/** Decode loop of one answer: samples token after token and yields text once it is certain. */
import type { TokenLogprob } from '../../types/index.ts'
import type {
  GenerationResult,
  GenerateOptions,
  TextChunk,
  Prompt,
  GenerationUpdate,
} from '../engine.ts'
import { withoutImageRows } from '../images.ts'
import type { Detokenizer } from '../text/detokenizer.ts'
import { createDrafter } from './drafter.ts'
import type { Output } from './output.ts'
import {
  createConstraintState,
  type ConstraintState,
  type ConstraintStateOptions,
} from './constraint-state.ts'
import type { Scheduler } from './scheduler.ts'
import { createTokenSource } from './token-source.ts'

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
  const nextToken = createTokenSource({
    slot,
    sampler,
    toLogprob,
    constraintState,
    drafter,
    resumeTokens,
    tokenLimit,
  })
  const buffer = createChunkBuffer(toLogprob !== undefined)
  let completionTokens = 0

  try {
    if (constraint) await constraintState.setConstraint(constraint)
    // Otherwise the first `computeNext` calls `onStart`.
    if (forcedTokens.length > 0 || tokenLimit < 1) await slot.start()
    let reason: GenerationResult['reason'] = 'length'
    while (completionTokens < tokenLimit) {
      const { token, logprob } = await nextToken(completionTokens)
      completionTokens += 1
      if (logprob) buffer.logprobs.push(logprob)
      buffer.tokenIds.push(token)
      if (setup.endTokens.has(token)) {
        reason = 'stop'
        break
      }
      buffer.text += detokenizer.push(token)
      if (buffer.text === '' || forcedTokens.length > 0 || completionTokens === tokenLimit) continue
      const update = yield buffer.take()
      if (update) await applyUpdate(update, constraintState, detokenizer)
    }
    // Bytes of an incomplete character are dropped, but the logprobs of their tokens are yielded.
    if (buffer.text !== '' || buffer.logprobs.length > 0) yield buffer.take()
    return { reason, completionTokens }
  } finally {
    slot.release()
    constraintState.close()
  }
}

/** Applies what the reader of a chunk decided about the rest of the answer. */
async function applyUpdate(
  { append, constraint }: GenerationUpdate,
  constraintState: ConstraintState,
  detokenizer: Detokenizer,
): Promise<void> {
  if (append || constraint) detokenizer.drop()
  if (constraint !== undefined) await constraintState.setConstraint(null)
  if (append) constraintState.forceText(append)
  if (constraint) await constraintState.setConstraint(constraint)
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
