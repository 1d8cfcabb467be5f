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
import { Sampler } from '../sampling/sampler.ts'
import type { ModelConfig } from '../text/config.ts'
import { createDetokenizerFactory, type Detokenizer, listTokenBytes } from '../text/vocabulary.ts'
import { ConstraintState, type ConstraintStateOptions } from './constraints.ts'
import { certainDrafter, type Drafter, LookupDrafter } from './drafter.ts'
import type { Scheduler, SlotHandle } from './scheduler.ts'

/** Dependencies and limits that all answers of a model share. */
export interface DecodeLoopSetup extends Omit<ConstraintStateOptions, 'signal'> {
  scheduler: Scheduler
  endTokens: ReadonlySet<number>
  contextWindow: number
  /** `true` to draft tokens, for a device that computes several about as fast as one. */
  drafts: boolean
}

/** Yields text once it is certain. Returns how the answer ended. Throws `aborted` at an abort. */
export async function* runDecodeLoop(
  setup: DecodeLoopSetup,
  { sampler, detokenizer, toLogprob }: Output,
  prompt: Prompt,
  options: GenerateOptions,
): AsyncGenerator<TextChunk, GenerationResult, GenerationUpdate | undefined> {
  const { signal, constraint, resumeTokens = [], partition = '', onStart } = options
  const { maxDraftTokens = Infinity } = options
  const tokenLimit = Math.min(options.maxTokens, setup.contextWindow - prompt.tokens.length)
  const constraintState = new ConstraintState({ ...setup, signal })
  const { forcedTokens } = constraintState
  const slot = setup.scheduler.add({
    prompt,
    partition,
    signal,
    onStart: (started) => onStart?.(started),
  })
  const hasDrafts = setup.drafts && !toLogprob && maxDraftTokens > 0
  const drafter = hasDrafts ? new LookupDrafter(withoutImageRows(prompt.tokens)) : null
  const source = new TokenSource({
    slot,
    sampler,
    toLogprob,
    constraintState,
    drafter,
    maxDraftTokens,
    resumeTokens,
    tokenLimit,
  })
  let completionTokens = 0
  /** Text that has not been yielded yet, and its tokens. */
  let text = ''
  const tokenIds: number[] = []
  const logprobs: TokenLogprob[] = []
  const takeChunk = (): TextChunk => {
    const chunk = {
      text,
      tokens: tokenIds.length,
      tokenIds: tokenIds.splice(0),
      ...(drafter && { drafts: drafter.counts }),
    }
    text = ''
    return toLogprob ? { ...chunk, logprobs: logprobs.splice(0) } : chunk
  }

  try {
    if (constraint) await constraintState.setConstraint(constraint)
    // Otherwise the first `computeNext` calls `onStart`.
    if (forcedTokens.length > 0 || tokenLimit < 1) await slot.start()
    let reason: GenerationResult['reason'] = 'length'
    while (completionTokens < tokenLimit) {
      const { token, logprob } = await source.next(completionTokens)
      completionTokens += 1
      tokenIds.push(token)
      if (setup.endTokens.has(token)) {
        reason = 'stop'
        break
      }
      if (logprob) logprobs.push(logprob)
      text += detokenizer.push(token)
      if (text === '' || forcedTokens.length > 0 || completionTokens === tokenLimit) continue
      const update = yield takeChunk()
      if (update) await applyUpdate(update, constraintState, detokenizer)
    }
    // The last tokens may have no text, as those of an incomplete character and special ones.
    // Their logprobs are yielded.
    if (text !== '' || logprobs.length > 0) yield takeChunk()
    return { reason, completionTokens, ...(drafter && { drafts: drafter.counts }) }
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

interface NextToken {
  token: number
  /** `null` unless logprobs were requested. */
  logprob: TokenLogprob | null
}

interface TokenSourceOptions extends Pick<Output, 'sampler' | 'toLogprob'> {
  slot: SlotHandle
  constraintState: ConstraintState
  /** Drafter of the answer; `null` for no drafts. */
  drafter: Drafter | null
  /** Largest number of draft tokens of one forward pass. */
  maxDraftTokens: number
  /** First tokens of the answer, which an interrupted run has sampled. */
  resumeTokens: readonly number[]
  tokenLimit: number
}

/** Determines the tokens of an answer: forced ones, those of an interrupted run, or samples. */
class TokenSource {
  readonly #options: TokenSourceOptions
  /** Tokens of the answer that the decoder has not computed yet. */
  readonly #pending: number[] = []

  constructor(options: TokenSourceOptions) {
    this.#options = options
  }

  /** Resolves to the token at `index`. It is called for each index in order. */
  async next(index: number): Promise<NextToken> {
    const { sampler, toLogprob, constraintState, drafter, resumeTokens } = this.#options
    const forcedToken = constraintState.forcedTokens.shift()
    const resumedToken = resumeTokens[index]
    const knownToken = forcedToken ?? resumedToken
    const next =
      knownToken !== undefined && !toLogprob
        ? { token: knownToken, logprob: null }
        : await this.#compute(knownToken, index, forcedToken !== undefined)
    if (forcedToken === undefined) {
      if (resumedToken !== undefined) sampler.skip()
      constraintState.accept(next.token)
    }
    sampler.accept(next.token)
    drafter?.append(next.token)
    this.#pending.push(next.token)
    return next
  }

  /**
   * Computes the logits of the next token. Resolves to that token, which is sampled if unknown. The
   * logits of the known tokens after a known one are computed in the same run.
   */
  async #compute(
    knownToken: number | undefined,
    index: number,
    isForced: boolean,
  ): Promise<NextToken> {
    const { slot, sampler, toLogprob, constraintState, resumeTokens } = this.#options
    const { maxDraftTokens, tokenLimit } = this.#options
    let token = knownToken
    let logprob: TokenLogprob | null = null
    let candidateRequest: CandidateRequest | undefined
    await slot.computeNext(this.#pending.splice(0), {
      requestCandidates: async (drafted) => {
        const mask = knownToken === undefined ? constraintState.tokenMask() : null
        const request = sampler.ask(mask, drafted)
        if (drafted.length === 0) candidateRequest = request
        return request
      },
      readLogits: async (candidates, row) => {
        const rowLogits = await (toLogprob && row())
        token ??= await sampler.choose((candidateRequest ??= sampler.ask(null)), candidates, row)
        logprob = (rowLogits && toLogprob?.(rowLogits, token)) ?? null
      },
      drafter: this.#drafterAfter(
        knownToken,
        isForced ? constraintState.forcedTokens : resumeTokens.slice(index + 1),
      ),
      maxDraftTokens: Math.min(maxDraftTokens, tokenLimit - index - 1),
      maxFurtherTokens: tokenLimit - index - 1,
    })
    return { token: token as number, logprob }
  }

  #drafterAfter(knownToken: number | undefined, following: readonly number[]): Drafter | null {
    if (knownToken !== undefined) return certainDrafter([knownToken, ...following])
    // A token mask is known for one token at a time, so constrained answers have no drafts.
    return this.#options.constraintState.isUnconstrained ? this.#options.drafter : null
  }
}

/** The output stages of one answer. */
export interface Output {
  sampler: Sampler
  detokenizer: Detokenizer
  /**
   * Returns the logprobs of a token from a row of logits. A special token, which has no text, has
   * its name and no bytes. Absent if logprobs were not requested.
   */
  toLogprob?: (row: Float32Array, token: number) => TokenLogprob
}

/** Returns a factory of output stages for a model. */
export function createOutputFactory(config: ModelConfig) {
  const { tokenizer, tokenizerConfig } = config
  const openDetokenizer = createDetokenizerFactory(tokenizer, tokenizerConfig)
  /** Names of the tokens that may have no bytes. */
  const names = new Map(tokenizer.added_tokens.map(({ id, content }) => [id, content]))
  /** Bytes of all tokens, by the visible special tokens as JSON. */
  const tokenBytes = new Map<string, (Uint8Array | null)[]>()
  const tokenBytesOf = (visible: readonly string[]): (Uint8Array | null)[] => {
    const key = JSON.stringify(visible)
    const bytes = tokenBytes.get(key) ?? listTokenBytes(tokenizer, tokenizerConfig, visible)
    tokenBytes.set(key, bytes)
    return bytes
  }

  return (
    prompt: Prompt,
    {
      sampling,
      visible = [],
      logprobs,
    }: Pick<GenerateOptions, 'sampling' | 'visible' | 'logprobs'>,
  ): Output => {
    const open = () => openDetokenizer(visible, prompt.hasResponsePrefix)
    return {
      sampler: new Sampler(sampling, config.sampling, withoutImageRows(prompt.tokens)),
      detokenizer: open(),
      ...(logprobs !== undefined && {
        toLogprob: createToLogprob(
          { bytes: tokenBytesOf(visible), names },
          (token) => open().push(token),
          logprobs,
        ),
      }),
    }
  }
}

/**
 * Returns a function for the logprobs of a token and of the `count` most probable tokens.
 * `textAtStart` returns the text of a token at the start of the answer.
 */
function createToLogprob(
  tokens: { bytes: readonly (Uint8Array | null)[]; names: ReadonlyMap<number, string> },
  textAtStart: (token: number) => string,
  count: number,
): NonNullable<Output['toLogprob']> {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let isFirst = true

  const probability = (id: number, logprob: number): TokenProbability => {
    const known = tokens.bytes[id]
    if (!known) return { text: tokens.names.get(id) ?? '', bytes: [], logprob }
    const bytes = [...known]
    // Some tokenizers put a space before the first word. It is not part of the text.
    if (isFirst && bytes[0] === 0x20 && !textAtStart(id).startsWith(' ')) bytes.shift()
    return { text: decoder.decode(Uint8Array.from(bytes)), bytes, logprob }
  }
  return (row, token) => {
    const { logprob, top } = computeLogprobs(row, token, count)
    const result = {
      ...probability(token, logprob),
      top: top.map((each) => probability(each.id, each.logprob)),
    }
    if (tokens.bytes[token]) isFirst = false
    return result
  }
}

/** Lower limit of logprobs, because JSON has no infinity. */
const MIN_LOGPROB = -9999

/**
 * Returns the logprobs of `token` and of the `count` most probable tokens in descending order,
 * before any adjustment and at temperature 1. The token itself may be among them.
 */
export function computeLogprobs(row: Float32Array, token: number, count: number) {
  const { ids, scores } = topLogits(row, Math.max(count, 1))
  const sum = logSumExp(row, scores[0] as number, 1)
  const logprob = (score: number): number => Math.max(score - sum, MIN_LOGPROB)
  return {
    logprob: logprob(row[token] ?? Number.NEGATIVE_INFINITY),
    top: Array.from(ids.subarray(0, count), (id) => ({ id, logprob: logprob(row[id] as number) })),
  }
}
