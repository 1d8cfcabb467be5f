/** Generates one answer: samples one token after the other and yields text once it is certain. */
import type { TokenLogprob } from '../../types/index.ts'
import type { Ending, GenerateOptions, Piece, Prompt, Steer } from '../engine.ts'
import type { CandidateRequest } from '../decoder.ts'
import { createDrafter } from './draft.ts'
import type { Output } from './output.ts'
import { createRules, type RulesOptions } from './rules.ts'
import type { Scheduler } from './scheduler.ts'

/** Dependencies and limits that all answers of a model share. */
export interface AnswerSetup extends Omit<RulesOptions, 'signal'> {
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
export async function* answer(
  setup: AnswerSetup,
  { sampler, text, logprob }: Output,
  prompt: Prompt,
  { maxTokens, signal, constraint, partition = '', onStart }: GenerateOptions,
): AsyncGenerator<Piece, Ending, Steer | undefined> {
  const limit = Math.min(maxTokens, setup.contextWindow - prompt.tokens.length)
  const rules = createRules({ ...setup, signal })
  const { given } = rules
  const lane = setup.scheduler.enter({
    prompt,
    partition,
    signal,
    onStart: (started) => onStart?.(started),
  })
  const drafter = setup.drafts && !logprob ? createDrafter(prompt.tokens) : null
  /** Tokens of the answer that the decoder has not computed yet. */
  const pending: number[] = []
  let logprobs: TokenLogprob[] = []
  let certain = ''
  let untold = 0
  let completionTokens = 0

  /** Resolves to the next token: a forced one, or a sampled one. */
  const next = async (): Promise<number> => {
    if (given.length > 0 && !logprob) return given.shift() as number
    const known = given.shift()
    let token = known
    let asked: CandidateRequest | undefined
    await lane.advance(pending.splice(0), {
      ask: async (guessed) => {
        const ask = sampler.ask(known === undefined ? await rules.mask() : null, guessed)
        if (guessed.length === 0) asked = ask
        return ask
      },
      read: async ({ candidates, row }) => {
        const scores = await (logprob && row())
        token ??= await sampler.choose((asked ??= sampler.ask(null)), candidates, row)
        const told = scores && logprob?.(scores, token)
        if (told) logprobs.push(told)
      },
      // A token mask is known for one token at a time, so constrained answers have no drafts.
      drafter: rules.free && known === undefined ? drafter : null,
      room: limit - completionTokens - 1,
    })
    if (known === undefined) rules.accept(token as number)
    return token as number
  }

  const piece = (): Piece => {
    const told: Piece = { text: certain, tokens: untold }
    if (logprob) told.logprobs = logprobs
    logprobs = []
    certain = ''
    untold = 0
    return told
  }

  try {
    if (constraint) await rules.follow(constraint)
    // Otherwise the first `advance` calls `onStart`.
    if (given.length > 0 || limit < 1) await lane.begin()
    let reason: Ending['reason'] = 'length'
    while (completionTokens < limit) {
      const token = await next()
      sampler.accept(token)
      drafter?.accept(token)
      completionTokens += 1
      untold += 1
      if (setup.endTokens.has(token)) {
        reason = 'stop'
        break
      }
      pending.push(token)
      certain += text.push(token)
      if (certain === '' || given.length > 0 || completionTokens === limit) continue
      const said = yield piece()
      if (said?.append || said?.constraint) text.drop()
      if (said?.constraint !== undefined) await rules.follow(null)
      if (said?.append) rules.write(said.append)
      if (said?.constraint) await rules.follow(said.constraint)
    }
    // Bytes of an incomplete character are dropped, but the logprobs of their tokens are yielded.
    if (certain !== '' || logprobs.length > 0) yield piece()
    return { reason, completionTokens }
  } finally {
    lane.leave()
    rules.close()
  }
}
