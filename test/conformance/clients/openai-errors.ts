/** The errors of OpenAI's SDK, which its users tell apart by their classes. */
import { APIError, AuthenticationError, BadRequestError, NotFoundError } from 'openai'
import type { Complaint, Failure } from '../client.ts'

export function openaiError(failure: Failure, thrown: unknown): boolean {
  switch (failure) {
    case 'invalid':
      return thrown instanceof BadRequestError && thrown.type === 'invalid_request_error'
    case 'unauthorised':
      return thrown instanceof AuthenticationError
    case 'unknown':
      return thrown instanceof NotFoundError && thrown.code === 'model_not_found'
    case 'tooLarge':
      return thrown instanceof APIError && thrown.status === 413
    case 'overflow':
      return thrown instanceof BadRequestError && thrown.code === 'context_length_exceeded'
  }
}

/** In front of the message, the SDK says the status. */
export function openaiComplaint(thrown: unknown): Complaint {
  if (!(thrown instanceof APIError)) return { status: undefined, message: String(thrown) }
  const status = Number(thrown.status)
  return { status, message: thrown.message.replace(/^\d{3} /, '') }
}
