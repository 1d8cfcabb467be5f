/** Types that all route handlers share, and the functions that run a generation for them. */
import type { Context } from 'hono'
import { InoriginError } from '../error.ts'
import type { Caller, GenerationRequest, Host } from '../types/index.ts'
import { answerBody } from './answer.ts'
import type { Encoder } from './answer.ts'
import { ignoredIn, inWordsOf } from './places.ts'
import type { Places } from './places.ts'
import { reply } from './reply.ts'
import type { Work } from './work.ts'

/** Context of one request, passed to its route handler. */
export interface Bindings {
  host: Host
  caller: Caller
  work: Work
  requestId: string
  /** Prefix of all paths: the scope and `v1`, without a slash at the end. */
  prefix: string
}

export type Answer = (context: Context<{ Bindings: Bindings }>) => Promise<Response>

/** Method, path below the prefix, and handler of a route. */
export type Route = readonly [method: 'GET' | 'POST' | 'DELETE', path: string, answer: Answer]

/** Parsed body: the request for the host, and the mapping of its fields back to the body's. */
export interface Asked {
  request: GenerationRequest
  places: Places
  ignored: readonly string[]
}

/** Runs the generation and streams its events. */
export async function generate(
  { request, places, ignored }: Asked,
  encoder: Encoder,
  { host, caller, work }: Bindings,
): Promise<Response> {
  const generation = await host.generate(request, caller).catch(thrownInWordsOf(places))
  const without = [...ignored, ...ignoredIn(places, generation.ignored)]
  return reply(
    answerBody(generation.events, encoder, work, (error) => inWordsOf(places, error)),
    {
      headers: { 'content-type': encoder.type, ...ignoredHeader(without) },
    },
  )
}

/** Returns the number of tokens of the prompt. */
export function countTokens(
  { request, places }: Asked,
  { host, caller }: Bindings,
): Promise<number> {
  return host.countTokens(request, caller).catch(thrownInWordsOf(places))
}

/** Returns a rejection handler that rethrows the error with the field names of the body. */
export function thrownInWordsOf(places: Places): (thrown: unknown) => never {
  return (thrown) => {
    throw inWordsOf(places, InoriginError.from(thrown))
  }
}

/**
 * Returns the header that lists fields without effect. Characters that are not allowed in a header
 * become `?`. At most 50 names are listed, each cut to 80 characters.
 */
export function ignoredHeader(names: readonly string[]): Record<string, string> {
  if (names.length === 0) return {}
  const listed = [...new Set(names)]
    .slice(0, 50)
    .map((name) => name.slice(0, 80).replaceAll(/[^\w.[\]-]/g, '?'))
  return { 'x-inorigin-ignored': listed.join(', ') }
}

/** Returns a JSON response. */
export function json(body: object, headers: Record<string, string> = {}): Response {
  return reply(JSON.stringify(body), { headers })
}
