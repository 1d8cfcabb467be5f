/**
 * One answer: what the engine makes of a request, as the events the wire styles are written from.
 */
import { InoriginError } from '../error.ts'
import type { Engine, Prompt } from '../engine/engine.ts'
import type { GenerationEvent, GenerationRequest, Usage } from '../types/index.ts'
import { createStops } from './stops.ts'

export interface GenerationLimits {
  /** Most tokens of one answer; a request that wants more gets this many. */
  maxOutputTokens: number
  /** The request's prompt, where it has been prepared already to see that it fits. */
  prompt?: Prompt
  /** What is cached is shared within one partition only. */
  partition?: string
}

/**
 * Yields `start`, `text` any number of times, and `finish`. Throws `invalid_request` before `start`
 * when the prompt does not fit, `aborted` within one token of the signal, `unavailable` when the
 * device fails.
 */
export async function* generate(
  engine: Engine,
  request: GenerationRequest,
  limits: GenerationLimits,
  signal: AbortSignal,
): AsyncGenerator<GenerationEvent> {
  const prompt = limits.prompt ?? engine.prepare({ messages: request.messages })
  const maxTokens = Math.min(request.maxTokens ?? limits.maxOutputTokens, limits.maxOutputTokens)
  const stops = createStops(request.stop)
  const usage: Usage = { promptTokens: prompt.tokens.length, cachedTokens: 0, completionTokens: 0, reasoningTokens: 0 }
  yield { type: 'start', promptTokens: usage.promptTokens, cachedTokens: usage.cachedTokens }

  const pieces = engine.generate(prompt, {
    maxTokens, sampling: request.sampling, partition: limits.partition, signal,
  })
  try {
    for (;;) {
      const { value, done } = await pieces.next()
      if (done) {
        const rest = stops.flush()
        if (rest !== '') yield { type: 'text', text: rest }
        const { reason, completionTokens } = value
        yield {
          type: 'finish',
          reason,
          stopSequence: null,
          usage: { ...usage, completionTokens },
        }
        return
      }
      usage.completionTokens += value.tokens
      const { text, match } = stops.push(value.text)
      if (text !== '') yield { type: 'text', text }
      if (match !== null) {
        yield { type: 'finish', reason: 'stop_sequence', stopSequence: match, usage }
        return
      }
    }
  } catch (thrown) {
    throw InoriginError.from(thrown)
  } finally {
    // Also when whoever reads the events walks away: the engine stops and frees what it holds.
    await pieces.return({ reason: 'stop', completionTokens: 0 })
  }
}
