import { Hono } from 'hono/tiny'
import type { Context } from 'hono'
import { InoriginError } from '../error.ts'
import type { Caller, GenerationRequest, Host } from '../types/index.ts'
import { answerBody } from './answer.ts'
import type { Encoder } from './answer.ts'
import { readBody } from './body.ts'
import { chatBody, chatPlaces, chatRequest, ignoredByChat } from './chat.ts'
import { chatJson, chatStream } from './chat-answer.ts'
import { embeddingsBody, embeddingsJson, embeddingsPlaces, embeddingsRequest } from './embeddings.ts'
import { errorResponse } from './errors.ts'
import { id } from './id.ts'
import { keyOf } from './key.ts'
import {
  countBody,
  ignoredByMessages,
  messagesBody,
  messagesPlaces,
  messagesRequest,
} from './messages.ts'
import { messageJson, messageStream } from './messages-answer.ts'
import { findModel, modelList, modelObject } from './models.ts'
import { ignoredIn, inWordsOf } from './places.ts'
import type { Places } from './places.ts'
import {
  predictionBody,
  predictionObject,
  predictionRequest,
  predictorObject,
} from './predictions.ts'
import { reasoningOf } from './reasoning.ts'
import { ignoredByRemote, remoteBody, remoteEncoder, remoteInputs } from './remote.ts'
import { reply } from './reply.ts'
import { digestIn, refuseLoads, resourceResponse } from './resources.ts'
import { responseJson, responseStream } from './responses-answer.ts'
import {
  ignoredByResponses,
  logprobsOf,
  responsesBody,
  responsesPlaces,
  responsesReasoning,
  responsesRequest,
  wantsSeals,
} from './responses.ts'
import { workOf } from './work.ts'
import type { Work } from './work.ts'

/** What one request is answered with. */
interface Bindings {
  host: Host
  caller: Caller
  work: Work
  requestId: string
  /** What comes before the paths below: the scope and `v1`. */
  prefix: string
}

type Answer = (context: Context<{ Bindings: Bindings }>) => Promise<Response>

/**
 * Answers a request inside `<base>v1/`: the service itself. Everything that goes wrong becomes an
 * answer with a JSON body; only a request whose own signal is aborted rejects, as `fetch` does.
 *
 * @param options.base Path of the scope the service lives under, with slashes at both ends.
 *   Default: `/`.
 */
export async function handle(
  request: Request,
  host: Host,
  options: { base?: string } = {},
): Promise<Response> {
  request.signal.throwIfAborted()
  const work = workOf(request)
  const caller = { key: keyOf(request.headers), signal: work.signal }
  const requestId = id('req_')
  const prefix = `${options.base ?? '/'}v1`
  let response: Response
  try {
    response = await app.fetch(request, {
      host,
      caller,
      work,
      requestId,
      prefix,
    } satisfies Bindings)
  } catch (error) {
    if (request.signal.aborted) throw request.signal.reason
    response = errorResponse(InoriginError.from(error), requestId)
  }
  // One for each style.
  response.headers.set('x-request-id', requestId)
  response.headers.set('request-id', requestId)
  return request.method === 'HEAD' ? new Response(null, response) : response
}

const chat: Answer = async ({ req, env }) => {
  const { fields, ignored } = await readBody(req.raw, chatBody, env.host, env.caller)
  const { model, stream, stream_options, logprobs } = fields
  const telling = { model, reasoning: reasoningOf(fields).shown, logprobs: logprobs ?? false }
  const encoder = stream
    ? chatStream(telling, stream_options?.include_usage ?? false)
    : chatJson(telling)
  ignored.push(...ignoredByChat(fields))
  const asked = { request: chatRequest(fields), places: chatPlaces(fields), ignored }
  return generate(asked, encoder, env)
}

const messages: Answer = async ({ req, env }) => {
  const { fields, ignored } = await readBody(req.raw, messagesBody, env.host, env.caller)
  const telling = { model: fields.model, reasoning: reasoningOf(fields).shown }
  const encoder = fields.stream ? messageStream(telling) : messageJson(telling)
  if (req.header('anthropic-beta')) ignored.push('anthropic-beta')
  ignored.push(...ignoredByMessages(fields))
  const asked = { request: messagesRequest(fields), places: messagesPlaces(fields), ignored }
  return generate(asked, encoder, env)
}

const responses: Answer = async ({ req, env }) => {
  const { fields, ignored } = await readBody(req.raw, responsesBody, env.host, env.caller)
  const telling = {
    asked: fields,
    reasoning: responsesReasoning(fields).shown,
    logprobs: logprobsOf(fields) !== undefined,
    sealed: wantsSeals(fields),
  }
  const encoder = fields.stream ? responseStream(telling) : responseJson(telling)
  ignored.push(...ignoredByResponses(fields))
  const asked = { request: responsesRequest(fields), places: responsesPlaces(fields), ignored }
  return generate(asked, encoder, env)
}

const countTokens: Answer = async ({ req, env }) => {
  const { fields, ignored } = await readBody(req.raw, countBody, env.host, env.caller)
  if (req.header('anthropic-beta')) ignored.push('anthropic-beta')
  ignored.push(...ignoredByMessages(fields))
  const count = env.host.countTokens(messagesRequest(fields), env.caller)
  const input_tokens = await count.catch(thrownInWordsOf(messagesPlaces(fields)))
  return json({ input_tokens }, ignoredHeader(ignored))
}

/** What a body asks for, free of its style, and the way back to its words. */
interface Asked {
  request: GenerationRequest
  places: Places
  ignored: readonly string[]
}

async function generate(
  { request, places, ignored }: Asked,
  encoder: Encoder,
  { host, caller, work }: Bindings,
): Promise<Response> {
  const generation = await host.generate(request, caller).catch(thrownInWordsOf(places))
  const without = [...ignored, ...ignoredIn(places, generation.ignored)]
  return reply(answerBody(generation.events, encoder, work, (error) => inWordsOf(places, error)), {
    headers: { 'content-type': encoder.type, ...ignoredHeader(without) },
  })
}

const embeddings: Answer = async ({ req, env }) => {
  const { host, caller, work } = env
  const { fields, ignored } = await readBody(req.raw, embeddingsBody, host, caller)
  const places = embeddingsPlaces(fields)
  const encoder = embeddingsJson(fields)
  const events = await host.embed(embeddingsRequest(fields), caller).catch(thrownInWordsOf(places))
  return reply(answerBody(events, encoder, work, (error) => inWordsOf(places, error)), {
    headers: { 'content-type': encoder.type, ...ignoredHeader(ignored) },
  })
}

function thrownInWordsOf(places: Places): (thrown: unknown) => never {
  return (thrown) => {
    throw inWordsOf(places, InoriginError.from(thrown))
  }
}

/** The fields without effect. What a header cannot carry is a `?`, what is too much is left off. */
function ignoredHeader(names: readonly string[]): Record<string, string> {
  if (names.length === 0) return {}
  const listed = [...new Set(names)]
    .slice(0, 50)
    .map((name) => name.slice(0, 80).replaceAll(/[^\w.[\]-]/g, '?'))
  return { 'x-inorigin-ignored': listed.join(', ') }
}

const models: Answer = async ({ req, env }) =>
  json(modelList(await env.host.models(env.caller), new URL(req.url).searchParams))

const model: Answer = async ({ req, env }) =>
  json(modelObject(findModel(await env.host.models(env.caller), req.param('path') ?? '')))

const predictor: Answer = async ({ req, env }) =>
  json(predictorObject(await env.host.predictor(req.param('path') ?? '', env.caller)))

const predictions: Answer = async ({ req, env }) => {
  const { fields, ignored } = await readBody(req.raw, predictionBody, env.host, env.caller)
  const prediction = await env.host.createPrediction(predictionRequest(fields), env.caller)
  return json(predictionObject(prediction), ignoredHeader(ignored))
}

const remote: Answer = async ({ req, env }) => {
  const { host, caller, work } = env
  const { fields, ignored } = await readBody(req.raw, remoteBody, host, caller)
  const { tag, signature } = await host.predictor(fields.tag, caller)
  const { inputs, dialect } = remoteInputs(fields, signature)
  const events = await host.predict(tag, inputs, caller)
  const encoder = remoteEncoder({ tag, signature, dialect }, fields.stream ?? false)
  ignored.push(...ignoredByRemote(fields))
  return reply(answerBody(events, encoder, work, (error) => error), {
    headers: { 'content-type': encoder.type, ...ignoredHeader(ignored) },
  })
}

const resource: Answer = async ({ req, env }) => {
  refuseLoads(req.raw)
  const { host, caller } = env
  const info = await host.resourceInfo(digestIn(req.param('path') ?? ''), caller)
  return resourceResponse(req.raw, info, () => host.resource(info.sha256, caller), env)
}

function json(body: object, headers: Record<string, string> = {}): Response {
  return reply(JSON.stringify(body), { headers })
}

/** Every path there is. A tag may come with its slash raw or encoded. */
const ROUTES: ReadonlyArray<[method: 'GET' | 'POST', path: string, answer: Answer]> = [
  ['POST', '/chat/completions', chat],
  ['POST', '/responses', responses],
  ['POST', '/messages', messages],
  ['POST', '/messages/count_tokens', countTokens],
  ['POST', '/embeddings', embeddings],
  ['GET', '/models', models],
  ['GET', '/models/:path{.+}', model],
  ['POST', '/predictions', predictions],
  ['POST', '/predictions/remote', remote],
  ['GET', '/predictors/:path{.+}', predictor],
  ['GET', '/resources/:path{.+}', resource],
]

const app = new Hono<{ Bindings: Bindings }>({
  /** The path below `/v1`; clients that add a second `/v1` to the one they were given mean that. */
  getPath(request, { env } = {}) {
    const { pathname } = new URL(request.url)
    const prefix = env?.prefix ?? ''
    if (!pathname.startsWith(`${prefix}/`)) return '/'
    return pathname
      .slice(prefix.length)
      .replace(/^\/v1(?=\/)/, '')
      .replace(/\/+$/, '')
  },
})

for (const [method, path, answer] of ROUTES) {
  app.on(method, path, answer)
  app.all(path, ({ req, env }) => {
    const allow = method === 'GET' ? 'GET, HEAD' : method
    const message = `${req.method} is not what this path answers; use ${allow}.`
    return errorResponse(new InoriginError('method_not_allowed', message), env.requestId, {
      headers: { allow },
    })
  })
}

app.notFound(({ req }) => {
  const { pathname } = new URL(req.url)
  const paths = ROUTES.map(([, path]) => `/v1${path.replace(/:path.*/, '...')}`).join(', ')
  const what = `${req.method} ${pathname} is not an endpoint here; there are ${paths}.`
  throw new InoriginError('not_found', what)
})

app.onError((error) => {
  throw error
})
