/** Answers that this device began and cannot finish, which an upstream server may continue. */
import type { ModelEntry } from '../../catalog/schema.ts'
import { findUpstream } from '../../catalog/upstreams.ts'
import { InoriginError } from '../../error.ts'
import type { GenerationRequest, InterruptedAnswer } from '../../types/index.ts'
import { toCondition } from './upstream-conditions.ts'

/**
 * Marks the error of a local answer if an upstream server may continue it. Only the asking side
 * knows what was delivered, so it asks again with that part.
 */
export function markInterruption(
  entry: ModelEntry,
  request: GenerationRequest,
  error: unknown,
): unknown {
  const { route } = request
  if (!(error instanceof InoriginError) || toCondition(error) !== 'unavailable') return error
  if (!isContinuable(request) || !findUpstream(entry, 'interrupted', route)) return error
  return new InoriginError(error.kind, error.message, {
    ...error.toRecord(),
    mayContinueUpstream: true,
    cause: error,
  })
}

/** Returns `false` for formats and biases that cannot begin in the middle of an answer. */
const isContinuable = ({ format, tools, sampling }: GenerationRequest): boolean =>
  !format && tools?.choice !== 'required' && !sampling.logitBias

/** Returns the request for the rest of the answer. */
export function toContinuation(
  { maxOutputTokens }: ModelEntry,
  request: GenerationRequest,
  { text, tokens }: InterruptedAnswer,
): GenerationRequest {
  const { responsePrefix = '', maxTokens = maxOutputTokens } = request
  const prefix = responsePrefix + text
  return {
    ...request,
    ...(prefix !== '' && { responsePrefix: prefix }),
    maxTokens: Math.max(1, maxTokens - tokens),
  }
}
