/**
 * One answer: what the engine makes of a request, as the events the wire styles are written from.
 */
import type { Engine } from '../engine/engine.ts'
import { InoriginError } from '../error.ts'
import type { GenerationEvent, GenerationRequest } from '../types/index.ts'
import { createAnswer } from './answer.ts'
import { plan, type Plan, type Ways } from './plan.ts'

export interface GenerationLimits {
  /** Most tokens of one answer; a request that wants more gets this many. */
  maxOutputTokens: number
  /** What {@link plan} made of the request, where it was asked already. */
  plan?: Plan
  /** For a plan that has not been made yet. */
  ways?: Ways
  /** What is cached is shared within one partition only. */
  partition?: string
}

/**
 * Yields `start`, then `reasoning`, `text` and calls as the model writes them, and `finish`. Throws
 * `invalid_request` before `start` where {@link plan} would, `aborted` within one token of the signal,
 * `unavailable` when the device fails.
 */
export async function* generate(
  engine: Engine,
  request: GenerationRequest,
  limits: GenerationLimits,
  signal: AbortSignal,
): AsyncGenerator<GenerationEvent> {
  const planned = limits.plan ?? (await plan(engine, request, limits.ways))
  const { prompt, constraint, visible } = planned
  const promptTokens = prompt.tokens.length
  let cachedTokens = 0
  let begin: (() => void) | undefined
  const started = new Promise<void>((resolve) => (begin = resolve))

  const pieces = engine.generate(prompt, {
    maxTokens: Math.min(request.maxTokens ?? limits.maxOutputTokens, limits.maxOutputTokens),
    sampling: request.sampling,
    signal,
    visible,
    ...(constraint && { constraint }),
    ...(request.logprobs !== undefined && { logprobs: request.logprobs }),
    ...(limits.partition !== undefined && { partition: limits.partition }),
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

    const answer = createAnswer(planned, request, { promptTokens, cachedTokens })
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
