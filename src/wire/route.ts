/** Types that all route handlers share, and the functions that run a generation for them. */
import type { Context } from 'hono'
import { InoriginError } from '../error.ts'
import type { Caller, GenerationRequest, Host } from '../types/index.ts'
import { createResponseBody } from './response-body.ts'
import type { EventEncoder } from './response-body.ts'
import { toBodyFields, withBodyFieldNames } from './field-names.ts'
import type { FieldNames } from './field-names.ts'
import { httpResponse } from './http-response.ts'
import type { Cancellation } from './cancellation.ts'

/** Context of one request, passed to its route handler. */
export interface Bindings {
  host: Host
  caller: Caller
  cancellation: Cancellation
  requestId: string
  /** Prefix of all paths: the scope and `v1`, without a slash at the end. */
  prefix: string
}

export type RouteHandler = (context: Context<{ Bindings: Bindings }>) => Promise<Response>

/** Method, path below the prefix, and handler of a route. */
export type Route = readonly [method: 'GET' | 'POST' | 'DELETE', path: string, answer: RouteHandler]

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
  { host, caller, cancellation }: Bindings,
): Promise<Response> {
  const generation = await host
    .generate(request, caller)
    .catch(rethrowWithBodyFieldNames(fieldNames))
  const ignoredFields = [...ignored, ...toBodyFields(fieldNames, generation.ignored)]
  return httpResponse(
    createResponseBody(generation.events, encoder, cancellation, (error) =>
      withBodyFieldNames(fieldNames, error),
    ),
    {
      headers: { 'content-type': encoder.type, ...ignoredFieldsHeader(ignoredFields) },
    },
  )
}

/** Returns the number of tokens of the prompt. */
export function countPromptTokens(
  { request, fieldNames }: ParsedRequest,
  { host, caller }: Bindings,
): Promise<number> {
  return host.countTokens(request, caller).catch(rethrowWithBodyFieldNames(fieldNames))
}

/** Returns a rejection handler that rethrows the error with the field names of the body. */
export function rethrowWithBodyFieldNames(fieldNames: FieldNames): (thrown: unknown) => never {
  return (thrown) => {
    throw withBodyFieldNames(fieldNames, InoriginError.from(thrown))
  }
}

/**
 * Returns the header that lists fields without effect. Characters that are not allowed in a header
 * become `?`. At most 50 names are listed, each cut to 80 characters.
 */
export function ignoredFieldsHeader(names: readonly string[]): Record<string, string> {
  if (names.length === 0) return {}
  const listed = [...new Set(names)]
    .slice(0, 50)
    .map((name) => name.slice(0, 80).replaceAll(/[^\w.[\]-]/g, '?'))
  return { 'x-inorigin-ignored': listed.join(', ') }
}

/** Returns a JSON response. */
export function jsonResponse(body: object, headers: Record<string, string> = {}): Response {
  return httpResponse(JSON.stringify(body), { headers })
}
