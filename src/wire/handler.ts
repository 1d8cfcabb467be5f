import { Hono } from 'hono/tiny'
import { InoriginError } from '../error.ts'
import type { Host } from '../types/index.ts'
import { answerBody } from './answer.ts'
import { readBody } from './body.ts'
import { chatBody, chatPlaces, chatRequest, ignoredByChat } from './chat.ts'
import { chatJson, chatStream } from './chat-answer.ts'
import { FUNCTION_CALL, TOOL_CALLS } from './chat-calls.ts'
import {
  embeddingsBody,
  embeddingsJson,
  embeddingsPlaces,
  embeddingsRequest,
} from './embeddings.ts'
import { errorResponse } from './errors.ts'
import { hasFunctions } from './functions.ts'
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
import { inWordsOf } from './places.ts'
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
import { responsesRoutes } from './responses-routes.ts'
import { countTokens, generate, ignoredHeader, json, thrownInWordsOf } from './route.ts'
import type { Answer, Bindings, Route } from './route.ts'
import { workOf } from './work.ts'

/**
 * Answers a request inside `<base>v1/`. Every failure becomes a response with a JSON body. Rejects,
 * as `fetch` does, only when the signal of the request is aborted.
 *
 * @param options.base Path of the service worker's scope, with slashes at both ends. Default: `/`.
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
  // OpenAI's clients read the first header, Anthropic's the second.
  response.headers.set('x-request-id', requestId)
  response.headers.set('request-id', requestId)
  return request.method === 'HEAD' ? new Response(null, response) : response
}

const chat: Answer = async ({ req, env }) => {
  const { fields, ignored } = await readBody(req.raw, chatBody, env.host, env.caller)
  const { model, stream, stream_options, logprobs } = fields
  const telling = {
    model,
    reasoning: reasoningOf(fields).shown,
    logprobs: logprobs ?? false,
    calls: hasFunctions(fields) ? FUNCTION_CALL : TOOL_CALLS,
  }
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

const count: Answer = async ({ req, env }) => {
  const { fields, ignored } = await readBody(req.raw, countBody, env.host, env.caller)
  if (req.header('anthropic-beta')) ignored.push('anthropic-beta')
  ignored.push(...ignoredByMessages(fields))
  const asked = { request: messagesRequest(fields), places: messagesPlaces(fields), ignored }
  const input_tokens = await countTokens(asked, env)
  return json({ input_tokens }, ignoredHeader(ignored))
}

const embeddings: Answer = async ({ req, env }) => {
  const { host, caller, work } = env
  const { fields, ignored } = await readBody(req.raw, embeddingsBody, host, caller)
  const places = embeddingsPlaces(fields)
  const encoder = embeddingsJson(fields)
  const events = await host.embed(embeddingsRequest(fields), caller).catch(thrownInWordsOf(places))
  return reply(
    answerBody(events, encoder, work, (error) => inWordsOf(places, error)),
    {
      headers: { 'content-type': encoder.type, ...ignoredHeader(ignored) },
    },
  )
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
  return reply(
    answerBody(events, encoder, work, (error) => error),
    {
      headers: { 'content-type': encoder.type, ...ignoredHeader(ignored) },
    },
  )
}

const resource: Answer = async ({ req, env }) => {
  refuseLoads(req.raw)
  const { host, caller } = env
  const info = await host.resourceInfo(digestIn(req.param('path') ?? ''), caller)
  return resourceResponse(req.raw, info, () => host.resource(info.sha256, caller), env)
}

/**
 * All routes. A fixed path comes before a pattern that would match it. The slash of a tag may be
 * raw or encoded.
 */
const ROUTES: readonly Route[] = [
  ['POST', '/chat/completions', chat],
  ...responsesRoutes,
  ['POST', '/messages', messages],
  ['POST', '/messages/count_tokens', count],
  ['POST', '/embeddings', embeddings],
  ['GET', '/models', models],
  ['GET', '/models/:path{.+}', model],
  ['POST', '/predictions', predictions],
  ['POST', '/predictions/remote', remote],
  ['GET', '/predictors/:path{.+}', predictor],
  ['GET', '/resources/:path{.+}', resource],
]

const app = new Hono<{ Bindings: Bindings }>({
  /**
   * Returns the path below `/v1`. Some clients append a second `/v1` or a second slash to the base
   * URL; both are removed.
   */
  getPath(request, { env } = {}) {
    const { pathname } = new URL(request.url)
    const prefix = env?.prefix ?? ''
    if (!pathname.startsWith(`${prefix}/`)) return '/'
    const path = pathname.slice(prefix.length).replace(/^\/+(?:v1\/+)?/, '/')
    let end = path.length
    // A regular expression for trailing slashes takes quadratic time on a million slashes.
    while (path[end - 1] === '/') end -= 1
    return path.slice(0, end)
  },
})

for (const path of new Set(ROUTES.map(([, each]) => each))) {
  const own = ROUTES.filter(([, each]) => each === path)
  for (const [method, , answer] of own) app.on(method, path, answer)
  const allow = own.map(([method]) => (method === 'GET' ? 'GET, HEAD' : method)).join(', ')
  app.all(path, ({ req, env }) => {
    const message = `${req.method} is not allowed on this path. Use ${allow}.`
    return errorResponse(new InoriginError('method_not_allowed', message), env.requestId, {
      headers: { allow },
    })
  })
}

app.notFound(({ req }) => {
  const { pathname } = new URL(req.url)
  const paths = new Set(ROUTES.map(([, path]) => `/v1${path.replace(/:(?:path.*|id)/, '...')}`))
  const what = `${req.method} ${pathname} is not an endpoint here; use ${[...paths].join(', ')}.`
  throw new InoriginError('not_found', what)
})

app.onError((error) => {
  throw error
})
