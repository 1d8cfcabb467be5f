/** What every answer of the wire is given, and what those of generations have in common. */
import type { Context } from 'hono'
import { InoriginError } from '../error.ts'
import type { Caller, GenerationRequest, Host } from '../types/index.ts'
import { answerBody } from './answer.ts'
import type { Encoder } from './answer.ts'
import { ignoredIn, inWordsOf } from './places.ts'
import type { Places } from './places.ts'
import { reply } from './reply.ts'
import type { Work } from './work.ts'

/** What one request is answered with. */
export interface Bindings {
  host: Host
  caller: Caller
  work: Work
  requestId: string
  /** What comes before the paths: the scope and `v1`. */
  prefix: string
}

export type Answer = (context: Context<{ Bindings: Bindings }>) => Promise<Response>

/** A method and a path below the prefix, and what answers there. */
export type Route = readonly [method: 'GET' | 'POST' | 'DELETE', path: string, answer: Answer]

/** What a body asks for, free of its style, and the way back to its words. */
export interface Asked {
  request: GenerationRequest
  places: Places
  ignored: readonly string[]
}

/** Has it generated, and tells of that as it comes. */
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

/** Only has the tokens of its prompt counted. */
export function countTokens(
  { request, places }: Asked,
  { host, caller }: Bindings,
): Promise<number> {
  return host.countTokens(request, caller).catch(thrownInWordsOf(places))
}

export function thrownInWordsOf(places: Places): (thrown: unknown) => never {
  return (thrown) => {
    throw inWordsOf(places, InoriginError.from(thrown))
  }
}

/** The fields without effect. What a header cannot carry is a `?`, what is too much is left off. */
export function ignoredHeader(names: readonly string[]): Record<string, string> {
  if (names.length === 0) return {}
  const listed = [...new Set(names)]
    .slice(0, 50)
    .map((name) => name.slice(0, 80).replaceAll(/[^\w.[\]-]/g, '?'))
  return { 'x-inorigin-ignored': listed.join(', ') }
}

/** An answer that is known as a whole. */
export function json(body: object, headers: Record<string, string> = {}): Response {
  return reply(JSON.stringify(body), { headers })
}
