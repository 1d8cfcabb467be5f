import * as v from 'valibot'
import { InoriginError, type ErrorDetails } from '../error.ts'
import { invalidRequest } from './errors.ts'
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
import { keepSchemaTexts } from './schema-texts.ts'
import { shorten } from '../values/text.ts'

/** Largest body: 32 MiB, enough for a long conversation with images. */
const MAX_BODY_BYTES = 32 * 1024 * 1024

/** Largest number of characters that a message shows of an invalid value. */
const MAX_VALUE_CHARACTERS = 60

/** A body that its schema and its conflicts have passed. */
export interface ParsedBody<Fields> {
  fields: Fields
  /** JSON before the schema was applied. */
  sent: unknown
  /** Paths of the fields without effect, such as `messages[].name`. */
  ignored: string[]
  /** Count of the JSON values that have been checked. */
  jsonCount: JsonCount
}

/**
 * Reads the JSON of a POST and checks it against a schema. `findConflict` returns the first conflict
 * between fields that are each valid alone. Rejects with `authentication` first when the caller has
 * no valid key, whatever else is wrong.
 */
export const readBody = <T extends v.GenericSchema>(
  context: RouteContext,
  schema: T,
  findConflict?: FindConflict<T>,
): Promise<ParsedBody<v.InferOutput<T>>> =>
  withAuthorization(context, async () => {
    const jsonCount = createJsonCount()
    const text = await readText(context.request)
    const jsonError = findJsonError(text, jsonCount)
    if (jsonError) throw toJsonException(jsonError, text)
    const sent: unknown = JSON.parse(text)
    keepSchemaTexts(text, sent)
    return { ...parseFields(sent, schema, findConflict, jsonCount), jsonCount }
  })

/** Reads the form of a POST, as `multipart/form-data`, and checks it as {@link readBody} does. */
export const readForm = <T extends v.GenericSchema>(
  context: RouteContext,
  schema: T,
  findConflict?: FindConflict<T>,
): Promise<Omit<ParsedBody<v.InferOutput<T>>, 'jsonCount'>> =>
  withAuthorization(context, async () =>
    parseFields(await readFormFields(context.request), schema, findConflict),
  )

type FindConflict<T extends v.GenericSchema> = (
  fields: v.InferOutput<T>,
) => FieldConflict | undefined

async function withAuthorization<T>(
  { host, caller }: RouteContext,
  read: () => Promise<T>,
): Promise<T> {
  try {
    return await read()
  } catch (error) {
    await host.authorize(caller).catch((refusal: unknown) => {
      if (refusal instanceof InoriginError && refusal.kind === 'authentication') throw refusal
    })
    throw error
  }
}

function parseFields<T extends v.GenericSchema>(
  sent: unknown,
  schema: T,
  findConflict: FindConflict<T> = () => undefined,
  jsonCount = createJsonCount(),
) {
  // The check runs at once, so no other request can change the count of the arguments meanwhile.
  const fields = withArgumentsCount(jsonCount, () => validate(schema, sent))
  const conflict = findConflict(fields)
  if (conflict) throw toValidationError(conflict)
  const ignored = new Set<string>()
  collectUnknownFields(sent, fields, '', ignored)
  return { fields, sent, ignored: [...ignored] }
}

async function readText(request: Request): Promise<string> {
  assertType(request, /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i, 'application/json')
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let text = ''
  for await (const piece of readPieces(request)) text += decode(decoder, piece)
  return text + decode(decoder)
}

/** Resolves with the fields of a form. A name that ends with `[]` is that of an array. */
async function readFormFields(request: Request): Promise<Record<string, unknown>> {
  const wanted = 'multipart/form-data'
  const type = assertType(request, /^multipart\/form-data\s*;/i, `${wanted} with a boundary`)
  const pieces: Uint8Array<ArrayBuffer>[] = []
  for await (const piece of readPieces(request)) pieces.push(piece)
  const form = await new Response(new Blob(pieces), { headers: { 'content-type': type } })
    .formData()
    .catch((cause: unknown) => {
      const message = `The body is not ${wanted}: its parts or its boundary cannot be read.`
      throw new InoriginError('invalid_request', message, { code: 'invalid_form', cause })
    })
  const fields: Record<string, unknown> = Object.create(null)
  for (const [key, value] of form) {
    const [, name = key, brackets] = /^(.*?)(\[\])?$/s.exec(key) ?? []
    const before = fields[name]
    if (brackets) fields[name] = Array.isArray(before) ? [...before, value] : [value]
    else if (before === undefined) fields[name] = value
    else
      throw invalidRequest(
        `\`${shorten(name)}\` must be sent once.`,
        'invalid_value',
        shorten(name),
      )
  }
  return { ...fields }
}

/** Returns the content type. Throws `invalid_request` for another one, and for a navigation. */
function assertType({ mode, headers }: Request, wanted: RegExp, name: string): string {
  // A form of another site cannot send JSON without a CORS preflight, and submitting it navigates.
  if (mode === 'navigate')
    throw new InoriginError('permission', 'A navigation cannot send this request. Use fetch().')
  const type = headers.get('content-type') ?? ''
  if (wanted.test(type)) return type
  const got = type ? `it is ${formatValue(type)}` : 'it is missing'
  throw invalidRequest(`The content-type header must be ${name}; ${got}.`, 'invalid_content_type')
}

/** Yields the body in pieces, up to the limit of its length. */
async function* readPieces(request: Request): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const encoding = request.headers.get('content-encoding')
  // `inorigin bridge` decodes bodies, and sends them on without the header.
  if (encoding && encoding.toLowerCase() !== 'identity') throw encodingError(encoding)
  if (Number(request.headers.get('content-length')) > MAX_BODY_BYTES) throw bodyTooLarge()
  // Firefox has no `body`: https://developer.mozilla.org/docs/Web/API/Request/body
  const body = request.body as ReadableStream<Uint8Array<ArrayBuffer>> | null | undefined
  let length = 0
  // Leaving the loop by an error cancels the stream before more than the limit is in memory.
  for await (const piece of body
    ? readStream(body)
    : [new Uint8Array(await request.arrayBuffer())]) {
    length += piece.byteLength
    if (length > MAX_BODY_BYTES) throw bodyTooLarge()
    yield piece
  }
}

/** Decodes the next piece, or what is left after the last one. */
function decode(decoder: TextDecoder, piece?: Uint8Array): string {
  try {
    return decoder.decode(piece, { stream: piece !== undefined })
  } catch (cause) {
    const details = { code: 'invalid_json', cause } as const
    throw new InoriginError('invalid_request', 'The body is not UTF-8.', details)
  }
}

function encodingError(encoding: string): InoriginError {
  const what = `The content-encoding ${formatValue(encoding)} is not supported here.`
  const code = 'invalid_content_encoding'
  return new InoriginError('unsupported_media_type', `${what} Send the body as it is.`, { code })
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
      const details = { code: 'invalid_json', details: { position } } as const
      return new InoriginError('invalid_request', message, details)
    }
    case 'depth': {
      const param = pathOf(jsonError.path)
      const message = `\`${param}\` is nested too deeply. Send at most ${MAX_DEPTH} levels.`
      return invalidRequest(message, 'nested_too_deeply', param)
    }
    case 'size':
      return tooManyValues('The body has')
  }
}

function describeSyntaxError(text: string, position: number): string {
  const codePoint = text.codePointAt(position)
  if (codePoint === undefined) {
    return text.trim() === '' ? 'it is empty' : `it ends at position ${position} and is incomplete`
  }
  let line = 1
  let column = position + 1
  for (let at = text.indexOf('\n'); at >= 0 && at < position; at = text.indexOf('\n', at + 1)) {
    line += 1
    column = position - at
  }
  const found = JSON.stringify(String.fromCodePoint(codePoint))
  return `unexpected ${found} at position ${position} (line ${line}, column ${column})`
}

function validate<T extends v.GenericSchema>(schema: T, input: unknown): v.InferOutput<T> {
  const result = v.safeParse(schema, input, { abortEarly: true })
  if (result.success) return result.output
  const [{ type, message, input: value, path }] = result.issues
  throw toValidationError({ message, input: value, path: path?.map(({ key }) => key) ?? [] }, type)
}

/** Collects the paths of fields of the input that the output of the schema leaves out. */
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
    const kept: unknown = Object.hasOwn(output, key) ? output[key] : undefined
    // A field that its rule accepts without effect is `undefined`, too.
    if (kept !== undefined) collectUnknownFields(value, kept, here, found)
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
  const invalid = (code: ErrorDetails['code'], what: string, details?: ErrorDetails['details']) =>
    new InoriginError('invalid_request', `${subject}${what}.`, { code, param, details })
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
const unsupportedDetails = (field = ''): Record<string, unknown> => ({
  error_code: `${field.replace(/\W.*$/s, '')}_unsupported_request`,
  unsupported: [field],
})

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
  // A number such as 1e400 is read as Infinity, for which JSON has only null.
  if (typeof value === 'number') return String(value)
  // Only the beginning of a string is shown, and a string may be 32 MiB long.
  const shown = typeof value === 'string' ? value.slice(0, MAX_VALUE_CHARACTERS) : value
  return shorten(JSON.stringify(shown) ?? String(shown), MAX_VALUE_CHARACTERS)
}
