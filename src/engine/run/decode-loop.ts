/** Decode loop of one answer: samples token after token and yields text once it is certain. */
import type { TokenLogprob, TokenProbability } from '../../types/index.ts'
import type { CandidateRequest } from '../decoder.ts'
import type {
  GenerateOptions,
  GenerationResult,
  GenerationUpdate,
  Prompt,
  TextChunk,
} from '../engine.ts'
import { withoutImageRows } from '../images.ts'
import { logSumExp, topLogits } from '../sampling/rank.ts'
import { createSampler, type Sampler } from '../sampling/sampler.ts'
import type { ModelConfig } from '../text/config.ts'
import { createDetokenizerFactory, type Detokenizer, listTokenBytes } from '../text/vocabulary.ts'
import {
  type ConstraintState,
  type ConstraintStateOptions,
  createConstraintState,
} from './constraints.ts'
import { certainDrafter, createDrafter, type Drafter } from './drafter.ts'
import type { Scheduler, SlotHandle } from './scheduler.ts'

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

// Determines the tokens of an answer: forced ones, those of an interrupted run, or sampled ones.

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

function createTokenSource({
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

// Creates the sampler, detokenizer and logprobs of an answer.

/** The output stages of one answer. */
export interface Output {
  sampler: Sampler
  detokenizer: Detokenizer
  /**
   * Returns the logprobs of a token from a row of logits, or `null` if the token has no text.
   * Absent if logprobs were not requested.
   */
  toLogprob?: (row: Float32Array, token: number) => TokenLogprob | null
}

/** Creates the output stages for a prompt and the options of its run. */
type OutputFactory = (
  prompt: Prompt,
  options: Pick<GenerateOptions, 'sampling' | 'visible' | 'logprobs'>,
) => Output

/** Returns a factory of output stages for a model. */
export function createOutputFactory({
  tokenizer,
  tokenizerConfig,
  sampling: defaults,
}: ModelConfig): OutputFactory {
  const openDetokenizer = createDetokenizerFactory(tokenizer, tokenizerConfig)
  /** Returns the bytes of all tokens, by the visible special tokens as JSON. */
  const tokenBytesOf = memoize((visible: string) =>
    listTokenBytes(tokenizer, tokenizerConfig, JSON.parse(visible) as string[]),
  )

  return (prompt, { sampling, visible = [], logprobs }) => ({
    sampler: createSampler(sampling, defaults, withoutImageRows(prompt.tokens)),
    detokenizer: openDetokenizer(visible, prompt.hasResponsePrefix),
    ...(logprobs !== undefined && {
      toLogprob: createToLogprob(
        tokenBytesOf(JSON.stringify(visible)),
        (token) => openDetokenizer(visible, prompt.hasResponsePrefix).push(token),
        logprobs,
      ),
    }),
  })
}

const SPACE = 0x20

/**
 * Returns a function for the logprobs of a token and of the `count` most probable tokens.
 * `textAtStart` returns the text of a token at the start of the answer.
 */
function createToLogprob(
  bytesOfToken: readonly (Uint8Array | null)[],
  textAtStart: (token: number) => string,
  count: number,
): NonNullable<Output['toLogprob']> {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let isFirst = true

  const probability = (id: number, logprob: number): TokenProbability => {
    const bytes = [...(bytesOfToken[id] ?? [])]
    // Some tokenizers put a space before the first word. It is not part of the text.
    if (isFirst && bytes[0] === SPACE && !textAtStart(id).startsWith(' ')) bytes.shift()
    return { text: decoder.decode(Uint8Array.from(bytes)), bytes, logprob }
  }
  return (row, token) => {
    if (!bytesOfToken[token]) return null
    const { logprob, top } = computeLogprobs(row, token, count)
    const result = {
      ...probability(token, logprob),
      top: top.map((each) => probability(each.id, each.logprob)),
    }
    isFirst = false
    return result
  }
}

// Computes logprobs from a model's own logits.

/** Logprobs at one position. */
interface Logprobs {
  /** Natural logarithm of the token's probability, at least -9999. */
  logprob: number
  /** Most probable tokens in descending order. The token itself may be among them. */
  top: readonly { id: number; logprob: number }[]
}

/** Lower limit of logprobs, because JSON has no infinity. */
const MIN_LOGPROB = -9999

/**
 * Returns the logprobs of `token` and of the `count` most probable tokens. They are computed before
 * any adjustment and at temperature 1.
 */
export function computeLogprobs(row: Float32Array, token: number, count: number): Logprobs {
  const { ids, scores } = topLogits(row, Math.max(count, 1))
  const sum = logSumExp(row, scores[0] as number, 1)
  const logprob = (score: number): number => Math.max(score - sum, MIN_LOGPROB)
  return {
    logprob: logprob(row[token] ?? Number.NEGATIVE_INFINITY),
    top: Array.from(ids.subarray(0, count), (id) => ({ id, logprob: logprob(row[id] as number) })),
  }
}

/** A place for results. A `WeakMap` lets them go with their key. */
interface Cache<Key, Result> {
  get(key: Key): Result | undefined
  set(key: Key, result: Result): unknown
}

/** Returns a function that computes the result of each key once. */
function memoize<Key, Result>(
  compute: (key: Key) => Result,
  cache: Cache<Key, Result> = new Map<Key, Result>(),
): (key: Key) => Result {
  return (key) => {
    const result = cache.get(key) ?? compute(key)
    cache.set(key, result)
    return result
  }
}
