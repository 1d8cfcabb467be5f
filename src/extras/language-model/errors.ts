/** The exceptions of the Prompt API. */
import { messageOf } from '../../error.ts'

/** Names of `DOMException` by the reason codes of the server. */
const NAMES: Readonly<Record<string, string>> = {
  constraint_dead_end: 'SyntaxError',
  constraint_too_slow: 'NotSupportedError',
  unsupported_constraint: 'NotSupportedError',
  unsupported_parameter: 'NotSupportedError',
  unsupported_schema: 'NotSupportedError',
  invalid_image: 'EncodingError',
  image_too_large: 'EncodingError',
  too_many_images: 'NotSupportedError',
  invalid_api_key: 'NotAllowedError',
  download_failed: 'NetworkError',
  download_replaced: 'NetworkError',
  hash_mismatch: 'NetworkError',
  hub_not_found: 'NetworkError',
  hub_refused: 'NetworkError',
  hub_unreachable: 'NetworkError',
  load_paused: 'NetworkError',
  resource_unreachable: 'NetworkError',
  storage_full: 'NetworkError',
}

/** Field of a request, with what is in it, that the page gave as `responseConstraint`. */
const CONSTRAINT_FIELD = /response_format(?:\.json_schema(?:\.schema)?|\.pattern|\.flags)?/g

/** An error that the server answered with. */
export class AnswerError extends Error {
  readonly code: string

  constructor(message: string, code: string) {
    super(message)
    this.code = code
  }
}

/** Creates a `DOMException`, with its cause if there is one. */
export function domException(name: string, message: string, cause?: unknown): DOMException {
  const exception = new DOMException(message, name)
  if (cause !== undefined) Object.defineProperty(exception, 'cause', { value: cause })
  return exception
}

/**
 * Returns the exception for an error of the server. Exceptions of the page stay as they are. Errors
 * without a name of their own get `otherwise`.
 */
export function toException(thrown: unknown, otherwise: string): unknown {
  const code = readCode(thrown)
  if (code === undefined) return thrown
  const message = messageOf(thrown).replaceAll(CONSTRAINT_FIELD, 'responseConstraint')
  return domException(NAMES[code] ?? otherwise, message, thrown)
}

/** Returns the reason code of an error of the server; `undefined` for other values. */
export function readCode(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error) || thrown instanceof DOMException) return undefined
  if (thrown.name === 'InoriginError' && !('code' in thrown && thrown.code)) return ''
  return 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : undefined
}

interface QuotaFields {
  requested: number
  quota: number
}

/** `QuotaExceededError` where the browser has only a `DOMException` of that name. */
class QuotaExceeded extends DOMException {
  readonly requested: number
  readonly quota: number

  constructor(message: string, { requested, quota }: QuotaFields) {
    super(message, 'QuotaExceededError')
    this.requested = requested
    this.quota = quota
  }
}

/** Creates the exception for a prompt that is larger than the context window. */
export function quotaExceeded(requested: number, quota: number): DOMException {
  const { QuotaExceededError: Own = QuotaExceeded } = globalThis as {
    QuotaExceededError?: new (message: string, fields: QuotaFields) => DOMException
  }
  const message = `The context window has ${quota} tokens, and ${requested} are needed. Shorten the prompt.`
  return new Own(message, { requested, quota })
}
