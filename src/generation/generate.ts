/**
 * One answer: what the engine makes of a request, as the events the wire styles are written from.
 *
 * A request goes through this folder in two steps. `plan.ts` reads from the chat template and the
 * catalog how the model is told of tools and how it reasons, has the engine make a prompt of the
 * conversation (`prompt.ts`), and says what the answer must be (`constraint.ts`); all that a request
 * can be refused for comes out there, before weights are needed. Then the pieces that the engine
 * writes go through `answer.ts`: reasoning is split off (`reasoning.ts`), calls are read as they are
 * written (`tools/`), stop texts held back (`stops.ts`), and probabilities kept for the text they
 * belong to (`logprobs.ts`).
 */
import type { Engine } from '../engine/engine.ts'
import { InoriginError } from '../error.ts'
import type { GenerationEvent, GenerationRequest } from '../types/index.ts'
import { createAnswer } from './answer.ts'
import type { Plan } from './plan.ts'

export interface GenerationOptions {
  /** What `plan` made of the request. */
  plan: Plan
  /** Most tokens of one answer; a request that wants more gets this many. */
  maxOutputTokens: number
  /** What is cached is shared within one partition only. */
  partition?: string
}

/**
 * Yields `start`, then `reasoning`, `text` and calls as the model writes them, and `finish`. Throws
 * `aborted` within one token of the signal, `unavailable` when the device fails.
 */
export async function* generate(
  engine: Engine,
  request: GenerationRequest,
  { plan, maxOutputTokens, partition }: GenerationOptions,
  signal: AbortSignal,
): AsyncGenerator<GenerationEvent> {
  const { prompt, constraint, visible } = plan
  const promptTokens = prompt.tokens.length
  let cachedTokens = 0
  let begin: (() => void) | undefined
  const started = new Promise<void>((resolve) => (begin = resolve))

  const pieces = engine.generate(prompt, {
    maxTokens: Math.min(request.maxTokens ?? maxOutputTokens, maxOutputTokens),
    sampling: request.sampling,
    signal,
    visible,
    ...(constraint && { constraint }),
    ...(request.logprobs !== undefined && { logprobs: request.logprobs }),
    ...(partition !== undefined && { partition }),
    onStart: (start) => {
      cachedTokens = start.cachedTokens
      begin?.()
    },
  })
  try {
    const first = pieces.next()
    // Long prompts take a while from their start to the first piece.
    await Promise.race([started, first])
    yield { type: 'start', promptTokens, cachedTokens }

    const answer = createAnswer(plan, request, { promptTokens, cachedTokens })
    let next = first
    for (;;) {
      const { value, done } = await next
      if (done) {
        yield* answer.end(value)
        return
      }
      const { events, steer } = answer.push(value)
      for (const event of events) {
        yield event
        if (event.type === 'finish') return
      }
      next = pieces.next(steer)
    }
  } catch (thrown) {
    throw InoriginError.from(thrown)
  } finally {
    // Also when whoever reads the events walks away: the engine stops and frees what it holds.
    await pieces.return({ reason: 'stop', completionTokens: 0 })
  }
}
