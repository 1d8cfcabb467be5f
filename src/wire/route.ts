/** Types that all route handlers share, and the responses that they return. */
import { InoriginError } from '../error.ts'
import type {
  AcceptedEvent,
  Caller,
  EventStream,
  GenerationRequest,
  Host,
  Route,
} from '../types/index.ts'
import { untilAccepted } from '../values/accepted.ts'
import { shorten } from '../values/text.ts'
import { createResponseBody, type EventEncoder } from './response-body.ts'
import { toBodyFields, withBodyFieldNames, type FieldNames } from './fields.ts'
import { errorJson, invalidRequest } from './errors.ts'
import { type Cancellation, httpResponse } from './http.ts'

/** One request and its context, passed to its route handler. */
export interface RouteContext {
  request: Request
  /** Variable part of the path, decoded. Empty if the route has none. */
  param: string
  host: Host
  caller: Caller
  cancellation: Cancellation
  requestId: string
}

export type RouteHandler = (context: RouteContext) => Promise<Response>

/** Method, path below `/v1` as a pattern with at most one group, and handler of a route. */
export type RouteEntry = readonly [method: string, path: string, answer: RouteHandler]

/** Parsed body: the request for the host, and the mapping of its fields back to the body's. */
export interface ParsedRequest {
  request: GenerationRequest
  fieldNames: FieldNames
  ignored: readonly string[]
}

/** Runs the generation and streams its events. */
export async function respondWithGeneration(
  { request, fieldNames, ignored }: ParsedRequest,
  encoder: EventEncoder,
  context: RouteContext,
): Promise<Response> {
  const { host, caller } = context
  const generation = host.generate({ ...request, ...parseRoute(context) }, caller)
  return eventResponse(generation, encoder, context, ignored, fieldNames)
}

/**
 * Returns the only place where the request may be answered, by its header `x-inorigin-route`. A value
 * that is misspelled is refused, because the prompt could leave the device otherwise.
 */
export function parseRoute({ request }: RouteContext): { route?: Route } {
  const route = request.headers.get('x-inorigin-route')
  if (route === null) return {}
  if (route === 'local' || route === 'upstream') return { route }
  const what = `must be local or upstream, not ${JSON.stringify(shorten(route))}.`
  const param = 'x-inorigin-route'
  throw invalidRequest(`The header ${param} ${what}`, 'invalid_value', param)
}

/** Responds with the number of tokens of the prompt, and these fields. */
export async function countResponse(
  { request, fieldNames, ignored }: ParsedRequest,
  { host, caller }: RouteContext,
  fields: object = {},
): Promise<Response> {
  const counting = host.countTokens(request, caller)
  const input_tokens = await counting.catch(rethrowWithBodyFieldNames(fieldNames))
  return jsonResponse({ ...fields, input_tokens }, ignored)
}

/** Returns a rejection handler that rethrows the error with the field names of the body. */
export function rethrowWithBodyFieldNames(fieldNames: FieldNames): (thrown: unknown) => never {
  return (thrown) => {
    throw withBodyFieldNames(fieldNames, InoriginError.from(thrown))
  }
}

/**
 * Returns a response with the encoded events. An error of its first 5 s becomes its status, unless
 * the request is accepted before. A later error ends the body. All name the fields of the body.
 */
export async function eventResponse<Event extends { type: string; servedBy?: Route }>(
  opening: Promise<EventStream<Event | AcceptedEvent> & { servedBy?: Route }>,
  encoder: EventEncoder<Event>,
  { cancellation, requestId }: RouteContext,
  ignored: readonly string[],
  fieldNames: FieldNames = { rename: [], reasoning: [] },
): Promise<Response> {
  const { servedBy, ...begun } = await opening
    .then(async (stream) => ({ ...stream, ...(await untilAccepted(stream.events)) }))
    .catch(rethrowWithBodyFieldNames(fieldNames))
  const body = createResponseBody(begun.events, encoder, cancellation, (failed) => {
    const error = withBodyFieldNames(fieldNames, failed)
    return encoder.fail?.(error) ?? errorJson(error, requestId)
  })
  return httpResponse(body, {
    headers: {
      'content-type': encoder.type,
      // With `no-store`, Chromium counts a body that is read to its end by a reader as aborted:
      // https://github.com/microsoft/playwright/issues/42742
      'cache-control': 'no-cache',
      ...ignoredFieldsHeader([...ignored, ...toBodyFields(fieldNames, begun.ignored)]),
      ...(servedBy && { 'x-inorigin-served-by': servedBy }),
    },
  })
}

/** Returns a JSON response. */
export function jsonResponse(body: object, ignored: readonly string[] = []): Response {
  return httpResponse(JSON.stringify(body), { headers: ignoredFieldsHeader(ignored) })
}

/** Largest number of names in the header, and of characters of each. */
const MAX_IGNORED_NAMES = 50
const MAX_IGNORED_CHARACTERS = 80

/**
 * Returns the header that lists what had no effect: fields, and keywords of schemas that are not
 * kept. Each is listed once. Characters that could end a name or are not ASCII become `?`.
 */
function ignoredFieldsHeader(names: readonly string[]): Record<string, string> {
  if (names.length === 0) return {}
  const all = new Set(
    names.map((name) => name.slice(0, MAX_IGNORED_CHARACTERS).replaceAll(/[^\w.:$@/[\]-]/g, '?')),
  )
  const listed = [...all].slice(0, MAX_IGNORED_NAMES)
  if (all.size > listed.length) listed.push(`and ${all.size - listed.length} more`)
  return { 'x-inorigin-ignored': listed.join(', ') }
}
