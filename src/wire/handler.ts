import { Hono } from 'hono/tiny'
import { InoriginError } from '../error.ts'
import type { Host } from '../types/index.ts'
import { createResponseBody } from './response-body.ts'
import { readBody } from './body.ts'
import { chatBodySchema, chatFieldNames, ignoredByChat, toChatRequest } from './chat.ts'
import { chatJsonEncoder, chatStreamEncoder } from './chat-encoder.ts'
import { FUNCTION_CALL, TOOL_CALLS } from './chat-calls.ts'
import {
  embeddingsBodySchema,
  embeddingsEncoder,
  embeddingsFieldNames,
  toEmbeddingsRequest,
} from './embeddings.ts'
import { errorResponse } from './errors.ts'
import { hasFunctions } from './functions.ts'
import { id } from './id.ts'
import { findApiKey } from './api-key.ts'
import {
  countTokensBodySchema,
  ignoredByMessages,
  messagesBodySchema,
  messagesFieldNames,
  toMessagesRequest,
} from './messages.ts'
import { messageJsonEncoder, messageStreamEncoder } from './messages-encoder.ts'
import { getModel, toModelJson, toModelListJson } from './models.ts'
import { withBodyFieldNames } from './field-names.ts'
import {
  predictionBodySchema,
  toPredictionJson,
  toPredictionRequest,
  toPredictorJson,
} from './predictions.ts'
import { toReasoning } from './reasoning.ts'
import { decodeInputs, ignoredByRemote, remoteBodySchema, remoteEncoder } from './remote.ts'
import { httpResponse } from './http-response.ts'
import { assertScriptedFetch, parseDigest, resourceResponse } from './resources.ts'
import { responsesRoutes } from './responses-routes.ts'
import {
  countPromptTokens,
  ignoredFieldsHeader,
  jsonResponse,
  respondWithGeneration,
  rethrowWithBodyFieldNames,
} from './route.ts'
import type { Bindings, Route, RouteHandler } from './route.ts'
import { createCancellation } from './cancellation.ts'

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
  const cancellation = createCancellation(request)
  const caller = { key: findApiKey(request.headers), signal: cancellation.signal }
  const requestId = id('req_')
  const prefix = `${options.base ?? '/'}v1`
  let response: Response
  try {
    response = await app.fetch(request, {
      host,
      caller,
      cancellation,
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

const createChatCompletion: RouteHandler = async ({ req, env }) => {
  const { fields, ignored } = await readBody(req.raw, chatBodySchema, env.host, env.caller)
  const { model, stream, stream_options, logprobs } = fields
  const options = {
    model,
    reasoning: toReasoning(fields).shown,
    logprobs: logprobs ?? false,
    calls: hasFunctions(fields) ? FUNCTION_CALL : TOOL_CALLS,
  }
  const encoder = stream
    ? chatStreamEncoder(options, stream_options?.include_usage ?? false)
    : chatJsonEncoder(options)
  ignored.push(...ignoredByChat(fields))
  const parsed = { request: toChatRequest(fields), fieldNames: chatFieldNames(fields), ignored }
  return respondWithGeneration(parsed, encoder, env)
}

const createMessage: RouteHandler = async ({ req, env }) => {
  const { fields, ignored } = await readBody(req.raw, messagesBodySchema, env.host, env.caller)
  const options = { model: fields.model, reasoning: toReasoning(fields).shown }
  const encoder = fields.stream ? messageStreamEncoder(options) : messageJsonEncoder(options)
  if (req.header('anthropic-beta')) ignored.push('anthropic-beta')
  ignored.push(...ignoredByMessages(fields))
  const parsed = {
    request: toMessagesRequest(fields),
    fieldNames: messagesFieldNames(fields),
    ignored,
  }
  return respondWithGeneration(parsed, encoder, env)
}

const countMessageTokens: RouteHandler = async ({ req, env }) => {
  const { fields, ignored } = await readBody(req.raw, countTokensBodySchema, env.host, env.caller)
  if (req.header('anthropic-beta')) ignored.push('anthropic-beta')
  ignored.push(...ignoredByMessages(fields))
  const parsed = {
    request: toMessagesRequest(fields),
    fieldNames: messagesFieldNames(fields),
    ignored,
  }
  const input_tokens = await countPromptTokens(parsed, env)
  return jsonResponse({ input_tokens }, ignoredFieldsHeader(ignored))
}

const createEmbeddings: RouteHandler = async ({ req, env }) => {
  const { host, caller, cancellation } = env
  const { fields, ignored } = await readBody(req.raw, embeddingsBodySchema, host, caller)
  const fieldNames = embeddingsFieldNames(fields)
  const encoder = embeddingsEncoder(fields)
  const { events } = await host
    .embed(toEmbeddingsRequest(fields), caller)
    .catch(rethrowWithBodyFieldNames(fieldNames))
  return httpResponse(
    createResponseBody(events, encoder, cancellation, (error) =>
      withBodyFieldNames(fieldNames, error),
    ),
    {
      headers: { 'content-type': encoder.type, ...ignoredFieldsHeader(ignored) },
    },
  )
}

const listModels: RouteHandler = async ({ req, env }) =>
  jsonResponse(toModelListJson(await env.host.models(env.caller), new URL(req.url).searchParams))

const getModelByTag: RouteHandler = async ({ req, env }) =>
  jsonResponse(toModelJson(getModel(await env.host.models(env.caller), req.param('path') ?? '')))

const getPredictor: RouteHandler = async ({ req, env }) =>
  jsonResponse(toPredictorJson(await env.host.predictor(req.param('path') ?? '', env.caller)))

const createPrediction: RouteHandler = async ({ req, env }) => {
  const { fields, ignored } = await readBody(req.raw, predictionBodySchema, env.host, env.caller)
  const prediction = await env.host.createPrediction(toPredictionRequest(fields), env.caller)
  return jsonResponse(toPredictionJson(prediction), ignoredFieldsHeader(ignored))
}

const runRemotePrediction: RouteHandler = async ({ req, env }) => {
  const { host, caller, cancellation } = env
  const { fields, ignored } = await readBody(req.raw, remoteBodySchema, host, caller)
  const { tag, signature } = await host.predictor(fields.tag, caller)
  const { inputs, dialect } = decodeInputs(fields, signature)
  const { events } = await host.createRemotePrediction(tag, inputs, caller)
  const encoder = remoteEncoder({ tag, signature, dialect }, fields.stream ?? false)
  ignored.push(...ignoredByRemote(fields))
  return httpResponse(
    createResponseBody(events, encoder, cancellation, (error) => error),
    {
      headers: { 'content-type': encoder.type, ...ignoredFieldsHeader(ignored) },
    },
  )
}

const getResource: RouteHandler = async ({ req, env }) => {
  assertScriptedFetch(req.raw)
  const { host, caller } = env
  const info = await host.resourceInfo(parseDigest(req.param('path') ?? ''), caller)
  return resourceResponse(req.raw, info, () => host.resource(info.sha256, caller), env)
}

/**
 * All routes. A fixed path comes before a pattern that would match it. The slash of a tag may be
 * raw or encoded.
 */
const ROUTES: readonly Route[] = [
  ['POST', '/chat/completions', createChatCompletion],
  ...responsesRoutes,
  ['POST', '/messages', createMessage],
  ['POST', '/messages/count_tokens', countMessageTokens],
  ['POST', '/embeddings', createEmbeddings],
  ['GET', '/models', listModels],
  ['GET', '/models/:path{.+}', getModelByTag],
  ['POST', '/predictions', createPrediction],
  ['POST', '/predictions/remote', runRemotePrediction],
  ['GET', '/predictors/:path{.+}', getPredictor],
  ['GET', '/resources/:path{.+}', getResource],
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
  const routesOfPath = ROUTES.filter(([, each]) => each === path)
  for (const [method, , handler] of routesOfPath) app.on(method, path, handler)
  const allow = routesOfPath.map(([method]) => (method === 'GET' ? 'GET, HEAD' : method)).join(', ')
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
