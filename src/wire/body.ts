import * as v from 'valibot'
import { InoriginError, type ErrorDetails } from '../error.ts'
import type { FieldConflict } from './fields.ts'
import {
  createJsonCount,
  findJsonError,
  type JsonCount,
  type JsonError,
  MAX_DEPTH,
  tooManyValues,
} from '../values/json.ts'
import { withArgumentsCount } from './tools.ts'
import { isObjectOrArray } from '../values/objects.ts'
import { readStream } from '../values/bytes.ts'
import type { RouteContext } from './route.ts'
import { shorten } from '../values/text.ts'

/** Largest body: 32 MiB, enough for a long conversation with images. */
const MAX_BODY_BYTES = 32 * 1024 * 1024

/** Largest number of characters that a message shows of an invalid value. */
const MAX_VALUE_CHARACTERS = 60

/**
 * Reads the body of a POST and checks it against a schema. Resolves with its fields, its JSON before
 * the schema was applied (`sent`), the paths of the fields without effect, such as
 * `messages[].name`, and the count of JSON values that have been checked. Rejects with
 * `authentication` first when the caller has no valid key, whatever else is wrong.
 *
 * @param findConflict Returns the first conflict between fields that are each valid alone.
 */
export async function readBody<T extends v.GenericSchema>(
  { request, host, caller }: RouteContext,
  schema: T,
  findConflict: (fields: v.InferOutput<T>) => FieldConflict | undefined = () => undefined,
) {
  try {
    const jsonCount = createJsonCount()
    const text = await readText(request)
    const jsonError = findJsonError(text, jsonCount)
    if (jsonError) throw toJsonException(jsonError, text)
    const input: unknown = JSON.parse(text)
    // The check runs at once, so no other request can change the count of the arguments meanwhile.
    return withArgumentsCount(jsonCount, () => validate(schema, input, findConflict, jsonCount))
  } catch (error) {
    await host.authorize(caller).catch((refusal: unknown) => {
      if (refusal instanceof InoriginError && refusal.kind === 'authentication') throw refusal
    })
    throw error
  }
}

async function readText(request: Request): Promise<string> {
  // A form of another site cannot send JSON without a CORS preflight, and submitting it navigates.
  if (request.mode === 'navigate') {
    throw new InoriginError('permission', 'A navigation cannot send this request. Use fetch().')
  }
  const type = request.headers.get('content-type')
  if (!/^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(type ?? '')) {
    const got = type ? `it is ${formatValue(type)}` : 'it is missing'
    const message = `The content-type header must be application/json; ${got}.`
    throw new InoriginError('invalid_request', message, { code: 'invalid_content_type' })
  }
  if (Number(request.headers.get('content-length')) > MAX_BODY_BYTES) throw bodyTooLarge()
  const bytes = await readBytes(request)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new InoriginError('invalid_request', 'The body is not UTF-8.', {
      code: 'invalid_json',
      cause,
    })
  }
}

/** Resolves with the body. Rejects with `too_large` before more than the limit is in memory. */
async function readBytes(request: Request): Promise<ArrayBuffer | Uint8Array> {
  // Firefox has no `body`: https://developer.mozilla.org/docs/Web/API/Request/body
  const body = request.body as ReadableStream<Uint8Array> | null | undefined
  if (!body) {
    const bytes = await request.arrayBuffer()
    if (bytes.byteLength > MAX_BODY_BYTES) throw bodyTooLarge()
    return bytes
  }
  const pieces: Uint8Array[] = []
  let length = 0
  // Leaving the loop by an error cancels the stream.
  for await (const piece of readStream(body)) {
    length += piece.byteLength
    if (length > MAX_BODY_BYTES) throw bodyTooLarge()
    pieces.push(piece)
  }
  const whole = new Uint8Array(length)
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.byteLength
  }
  return whole
}

function bodyTooLarge(): InoriginError {
  const message = `The body is larger than ${MAX_BODY_BYTES} bytes. Send less at once.`
  return new InoriginError('too_large', message, { code: 'request_too_large' })
}

function toJsonException(jsonError: JsonError, text: string): InoriginError {
  switch (jsonError.type) {
    case 'syntax': {
      const { position } = jsonError
      const message = `The body is not JSON: ${describeSyntaxError(text, position)}.`
      return new InoriginError('invalid_request', message, {
        code: 'invalid_json',
        details: { position },
      })
    }
    case 'depth': {
      const param = pathOf(jsonError.path)
      const message = `\`${param}\` is nested too deeply. Send at most ${MAX_DEPTH} levels.`
      return new InoriginError('invalid_request', message, { code: 'nested_too_deeply', param })
    }
    case 'size':
      return tooManyValues('The body has')
  }
}

const LINE_FEED = 0x0a

function describeSyntaxError(text: string, position: number): string {
  const codePoint = text.codePointAt(position)
  if (codePoint === undefined) {
    return text.trim() === '' ? 'it is empty' : `it ends at position ${position} and is incomplete`
  }
  let line = 1
  let lineStart = 0
  for (let at = 0; at < position; at += 1) {
    if (text.charCodeAt(at) !== LINE_FEED) continue
    line += 1
    lineStart = at + 1
  }
  const found = JSON.stringify(String.fromCodePoint(codePoint))
  const column = position - lineStart + 1
  return `unexpected ${found} at position ${position} (line ${line}, column ${column})`
}

function validate<T extends v.GenericSchema>(
  schema: T,
  input: unknown,
  findConflict: (fields: v.InferOutput<T>) => FieldConflict | undefined,
  jsonCount: JsonCount,
) {
  const result = v.safeParse(schema, input, { abortEarly: true })
  if (!result.success) {
    const [{ type, message, input: value, path }] = result.issues
    throw toValidationError(
      { message, input: value, path: path?.map(({ key }) => key) ?? [] },
      type,
    )
  }
  const conflict = findConflict(result.output)
  if (conflict) throw toValidationError(conflict)
  const ignored = new Set<string>()
  collectUnknownFields(input, result.output, '', ignored)
  return { fields: result.output, sent: input, ignored: [...ignored], jsonCount }
}

/** Collects the paths of fields that are in the input but not in the output of the schema. */
function collectUnknownFields(
  input: unknown,
  output: unknown,
  path: string,
  found: Set<string>,
): void {
  if (input === output || !isObjectOrArray(input) || !isObjectOrArray(output)) return
  if (Array.isArray(input)) {
    if (Array.isArray(output))
      input.forEach((item, i) => collectUnknownFields(item, output[i], `${path}[]`, found))
    return
  }
  for (const [key, value] of Object.entries(input)) {
    const here = path === '' ? key : `${path}.${key}`
    if (Object.hasOwn(output, key)) collectUnknownFields(value, output[key], here, found)
    else if (value !== null) found.add(here)
  }
}

/** Returns the error for an invalid value, with its path in `param`. `type` is valibot's. */
function toValidationError(
  { path, message, input }: { path: readonly unknown[]; message: string; input: unknown },
  type?: string,
): InoriginError {
  const param = path.length > 0 ? pathOf(path) : undefined
  const subject = param === undefined ? 'The body' : `\`${param}\``
  const invalid = (code: ErrorDetails['code'], what: string, details?: Record<string, unknown>) =>
    new InoriginError('invalid_request', `${subject}${what}.`, {
      code,
      param,
      ...(details && { details }),
    })
  if (type === 'custom') {
    const what = `${describeUnsupported(input)} is not supported by this server; ${message}`
    return invalid('unsupported_parameter', what, unsupportedDetails(param))
  }
  if (input === undefined) return invalid('missing_required_parameter', ' is required')
  return invalid('invalid_value', ` must be ${message}, not ${formatValue(input)}`)
}

/**
 * Names the refused field for clients that can retry without it. By this code, Anthropic's clients
 * know that `thread` is not supported, and then send the whole conversation.
 */
function unsupportedDetails(param: string | undefined): Record<string, unknown> {
  const field = param ?? ''
  return { error_code: `${field.replace(/\W.*$/s, '')}_unsupported_request`, unsupported: [field] }
}

function pathOf(keys: readonly unknown[]): string {
  return keys.reduce<string>((path, key) => {
    if (typeof key === 'number') return `${path}[${key}]`
    const name = String(key).slice(0, 80)
    return path === '' ? name : `${path}.${name}`
  }, '')
}

/** Describes the value that is not supported, where its path alone does not. */
function describeUnsupported(input: unknown): string {
  if (!isObjectOrArray(input)) return ` = ${formatValue(input)}`
  const key = ['type', 'role'].find((tag) => typeof input[tag] === 'string')
  return key === undefined ? '' : ` with ${key} ${formatValue(input[key])}`
}

function formatValue(value: unknown): string {
  if (Array.isArray(value)) return `an array of ${value.length}`
  if (isObjectOrArray(value)) return 'an object'
  // Only the beginning of a string is shown, and a string may be 32 MiB long.
  const shown = typeof value === 'string' ? value.slice(0, MAX_VALUE_CHARACTERS) : value
  return shorten(JSON.stringify(shown) ?? String(shown), MAX_VALUE_CHARACTERS)
}
