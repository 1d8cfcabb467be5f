/**
 * Runs one request on an engine and streams the events that the wire encoders serialize.
 *
 * `plan.ts` comes first: it detects how the model is given tools and how it reasons, has the engine
 * build the prompt, and builds the constraint of the answer. Every reason to reject a request
 * surfaces there, before weights are needed. Then `completion.ts` turns the pieces that the engine
 * generates into reasoning, calls, and text up to a stop sequence with its logprobs.
 */
import type { Engine } from '../engine/engine.ts'
import { InoriginError } from '../error.ts'
import type { ContentEvent, GenerationEvent, GenerationRequest } from '../types/index.ts'
import type { Coalescer } from './coalesce.ts'
import { Completion } from './completion.ts'
import type { GenerationPlan } from './plan.ts'

export interface GenerationOptions {
  /** The result of `plan` for this request. */
  plan: GenerationPlan
  /** Maximum number of tokens of one answer. It caps a request's own `maxTokens`. */
  maxOutputTokens: number
  /** Name of the prefix cache's partition. Cached tokens are shared only within one partition. */
  partition?: string
  /**
   * Waits until the request may run, after its events are requested. Resolves with a function to
   * call at its end. Default: it may run at once.
   */
  waitForTurn?: () => Promise<() => void>
  /** Merges the events. Default: each is yielded at once. */
  coalescer?: Coalescer
}

/**
 * Yields `start`, then `reasoning`, `text` and calls as the model writes them, and `finish`. Throws
 * `aborted` within one token of the signal's abort, and `unavailable` when the device fails.
 */
export async function* runGeneration(
  engine: Engine,
  request: GenerationRequest,
  { plan, maxOutputTokens, partition, waitForTurn, coalescer = uncoalesced }: GenerationOptions,
  signal: AbortSignal,
): AsyncGenerator<GenerationEvent> {
  const endTurn = await waitForTurn?.()
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
    maxDraftTokens: request.maxDraftTokens,
    ...(request.resumeTokens && { resumeTokens: request.resumeTokens }),
    ...(partition !== undefined && { partition }),
    onStart: (start) => {
      cachedTokens = start.cachedTokens
      begin?.()
    },
  })
  try {
    const first = pieces.next()
    // The first piece of a long prompt arrives long after its prefill has started.
    await Promise.race([started, first])
    yield { type: 'start', promptTokens, cachedTokens }

    const answer = new Completion(plan, request, { promptTokens, cachedTokens })
    const attachTokens = createTokenLog()
    let next = first
    for (;;) {
      const { value, done } = await next
      if (done) {
        yield* answer.end(value).flatMap(coalescer.push)
        return
      }
      const { events, steer } = answer.push(value)
      yield* attachTokens(events, value.tokenIds).flatMap(coalescer.push)
      if (events.at(-1)?.type === 'finish') return
      next = pieces.next(steer)
    }
  } catch (thrown) {
    yield* coalescer.flush()
    throw InoriginError.from(thrown)
  } finally {
    // This also runs when the consumer stops early: the engine stops and frees its resources.
    await pieces.return({ reason: 'stop', completionTokens: 0 })
    endTurn?.()
  }
}

const uncoalesced: Coalescer = { push: (event) => [event], flush: () => [] }

// Attaches to the events of a completion the tokens from which another host can continue it.

/**
 * Returns a function for the events of one completion in their order, and the tokens that led to
 * them. The last content among the events gets these tokens, and those of earlier calls without
 * content.
 */
function createTokenLog(): (
  events: readonly GenerationEvent[],
  tokenIds?: readonly number[],
) => GenerationEvent[] {
  let tokens: number[] = []
  return (events, tokenIds = []) => {
    tokens.push(...tokenIds)
    const last = events.findLastIndex(isContent)
    if (last === -1 || tokens.length === 0) return [...events]
    const logged = events.map((event, index) => (index === last ? { ...event, tokens } : event))
    tokens = []
    return logged
  }
}

function isContent(event: GenerationEvent): event is ContentEvent {
  return ['reasoning', 'text', 'tool_call', 'tool_arguments'].includes(event.type)
}
