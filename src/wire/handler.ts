/**
 * The HTTP API below `/v1`. A handler checks the body by the schema of its style, has the host do
 * the work, and encodes the events in the same style. Every failure becomes a JSON body that names
 * the field as the client sent it. This folder knows the host only by its type.
 */
import { InoriginError } from '../error.ts'
import type { Host } from '../types/index.ts'
import { readBody } from './body.ts'
import { chatBodySchema, findChatConflict, parseChat } from './chat.ts'
import { chatEncoder } from './chat-encoder.ts'
import { embeddingsBodySchema, embeddingsEncoder, parseEmbeddings } from './embeddings.ts'
import { errorResponse } from './errors.ts'
import { createCancellation, createId, findApiKey } from './http.ts'
import {
  countTokensBodySchema,
  findMessagesConflict,
  messagesBodySchema,
  parseMessages,
} from './messages.ts'
import { messageEncoder } from './messages-encoder.ts'
import { getModel, toModelJson, toModelListJson } from './models.ts'
import {
  ignoredByRemote,
  predictionBodySchema,
  remoteBodySchema,
  remoteEncoder,
  toPredictionJson,
  toPredictionRequest,
  toPredictorJson,
} from './predictions.ts'
import { assertScriptedFetch, parseDigest, resourceResponse } from './resources.ts'
import { parseRerank, rerankBodySchema, rerankEncoder } from './rerank.ts'
import { parseSpeech, speechBodySchema, speechEncoder } from './speech.ts'
import { responsesRoutes } from './responses-routes.ts'
import {
  countResponse,
  eventResponse,
  jsonResponse,
  parseRoute,
  type ParsedRequest,
  respondWithGeneration,
  type RouteContext,
  type RouteEntry,
  type RouteHandler,
} from './route.ts'
import { shorten } from '../values/text.ts'

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
  const requestId = createId('req_')
  let response: Response
  try {
    const path = pathBelow(`${options.base ?? '/'}v1`, request)
    const context = { request, param: '', host, caller, cancellation, requestId }
    response = await routeRequest(path, context)
  } catch (error) {
    if (request.signal.aborted) throw request.signal.reason
    response = errorResponse(InoriginError.from(error), requestId)
  }
  // OpenAI's clients read the first header, Anthropic's the second.
  response.headers.set('x-request-id', requestId)
  response.headers.set('request-id', requestId)
  return request.method === 'HEAD' ? new Response(null, response) : response
}

const createChatCompletion: RouteHandler = async (context) => {
  const body = await readBody(context, chatBodySchema, findChatConflict)
  return respondWithGeneration(parseChat(body), chatEncoder(body.fields), context)
}

const createMessage: RouteHandler = async (context) => {
  const body = await readBody(context, messagesBodySchema, findMessagesConflict)
  const parsed = withBeta(parseMessages(body), context)
  return respondWithGeneration(parsed, messageEncoder(body.fields), context)
}

const countMessageTokens: RouteHandler = async (context) => {
  const body = await readBody(context, countTokensBodySchema)
  return countResponse(withBeta(parseMessages(body), context), context)
}

/** Adds the header by which clients ask for beta features to what had no effect. */
function withBeta(parsed: ParsedRequest, { request }: RouteContext): ParsedRequest {
  if (!request.headers.get('anthropic-beta')) return parsed
  return { ...parsed, ignored: [...parsed.ignored, 'anthropic-beta'] }
}

const createEmbeddings: RouteHandler = async (context) => {
  const { fields, ignored } = await readBody(context, embeddingsBodySchema)
  const { request, fieldNames } = parseEmbeddings(fields)
  const embedding = context.host.embed({ ...request, ...parseRoute(context) }, context.caller)
  return eventResponse(embedding, embeddingsEncoder(fields), context, ignored, fieldNames)
}

const createRanking: RouteHandler = async (context) => {
  const { fields, ignored } = await readBody(context, rerankBodySchema)
  const request = parseRerank(fields)
  const ranking = context.host.rerank(request, context.caller)
  return eventResponse(ranking, rerankEncoder(fields, request), context, ignored)
}

const createSpeech: RouteHandler = async (context) => {
  const { fields, ignored } = await readBody(context, speechBodySchema)
  const speech = await context.host.speak(parseSpeech(fields), context.caller)
  return eventResponse(
    Promise.resolve(speech),
    speechEncoder(fields, speech.rate),
    context,
    ignored,
  )
}

const listModels: RouteHandler = async ({ request, host, caller }) =>
  jsonResponse(toModelListJson(await host.models(caller), new URL(request.url).searchParams))

const getModelByTag: RouteHandler = async ({ param, host, caller }) =>
  jsonResponse(toModelJson(getModel(await host.models(caller), param)))

const getPredictor: RouteHandler = async ({ param, host, caller }) =>
  jsonResponse(toPredictorJson(await host.predictor(param, caller)))

const createPrediction: RouteHandler = async (context) => {
  const { host, caller } = context
  const { fields, ignored } = await readBody(context, predictionBodySchema)
  const prediction = await host.createPrediction(toPredictionRequest(fields), caller)
  return jsonResponse(toPredictionJson(prediction), ignored)
}

const runRemotePrediction: RouteHandler = async (context) => {
  const { host, caller } = context
  const { fields, ignored, jsonCount } = await readBody(context, remoteBodySchema)
  const request = { tag: fields.tag, inputs: fields.inputs ?? {}, jsonCount }
  const prediction = await host.createRemotePrediction(request, caller)
  const encoder = remoteEncoder(prediction.tag, fields.stream ?? false)
  return eventResponse(Promise.resolve(prediction), encoder, context, [
    ...ignored,
    ...ignoredByRemote(fields),
  ])
}

const getResource: RouteHandler = async (context) => {
  const { request, param, host, caller } = context
  assertScriptedFetch(request)
  const info = await host.resourceInfo(parseDigest(param), caller)
  return resourceResponse(request, info, () => host.resource(info.sha256, caller), context)
}

/** Returns the response to `GET /v1`, which lists the endpoints. It needs no host. */
export async function listEndpoints(): Promise<Response> {
  const data = ROUTES.map(([method, path]) => ({ method, path: toDocumentedPath(path) }))
  return jsonResponse({ object: 'list', server: 'inorigin', data })
}

/** All routes. A fixed path comes before a pattern that would match it. */
const ROUTES: readonly RouteEntry[] = [
  ['GET', '', listEndpoints],
  ['POST', '/chat/completions', createChatCompletion],
  ...responsesRoutes,
  ['POST', '/messages', createMessage],
  ['POST', '/messages/count_tokens', countMessageTokens],
  ['POST', '/embeddings', createEmbeddings],
  ['POST', '/rerank', createRanking],
  ['POST', '/audio/speech', createSpeech],
  ['GET', '/models', listModels],
  ['GET', '/models/(.+)', getModelByTag],
  ['POST', '/predictions', createPrediction],
  ['POST', '/predictions/remote', runRemotePrediction],
  ['GET', '/predictors/(.+)', getPredictor],
  ['GET', '/resources/(.+)', getResource],
]

/** Returns the path of a route as the documentation writes it, such as `/v1/models/...`. */
const toDocumentedPath = (pattern: string): string => `/v1${pattern.replace(/\(.*\)/, '...')}`

/** Endpoints of other servers, and the routes that do the same. */
const REPLACEMENTS: ReadonlyArray<readonly [path: RegExp, instead: string]> = [
  [/^\/(completions|complete)$/, 'POST /v1/chat/completions'],
  [/^\/realtime\b/, 'POST /v1/responses with stream: true'],
  [/^\/(assistants|threads|conversations)\b/, 'POST /v1/responses with previous_response_id'],
  [/^\/(batches|messages\/batches)\b/, 'POST /v1/responses with background: true'],
]

/**
 * Returns the path below `/v1`, without a second `/v1` or slash that some clients append. That of
 * `/v1` itself is empty. Returns `null` for a path outside of `/v1`.
 */
function pathBelow(prefix: string, { url }: Pick<Request, 'url'>): string | null {
  const { pathname } = new URL(url)
  if (!`${pathname}/`.startsWith(`${prefix}/`)) return null
  const path = pathname.slice(prefix.length).replace(/^\/+(?:v1(?:\/+|$))?/, '/')
  let end = path.length
  // A regular expression for trailing slashes takes quadratic time on a million slashes.
  while (path[end - 1] === '/') end -= 1
  return path.slice(0, end)
}

/** Calls the handler of the first path that matches, or responds with 405. */
async function routeRequest(path: string | null, context: RouteContext): Promise<Response> {
  const { request } = context
  const routes = findRoutes(path, request)
  const method = request.method === 'HEAD' ? 'GET' : request.method
  const [, pattern = '', answer] = routes.find(([each]) => each === method) ?? []
  if (!answer) return refuseMethod(request.method, routes, context.requestId)
  return answer({ ...context, param: decodePath(matchPath(pattern, path ?? '')?.[1] ?? '') })
}

/** Returns the routes of a path, one for each method. Throws `not_found` if there are none. */
function findRoutes(path: string | null, request: Pick<Request, 'method' | 'url'>) {
  const [, pattern] = ROUTES.find(([, each]) => path !== null && matchPath(each, path)) ?? []
  return pattern === undefined
    ? throwNoEndpoint(request, path)
    : ROUTES.filter(([, each]) => each === pattern)
}

function refuseMethod(method: string, routes: readonly RouteEntry[], requestId: string): Response {
  const allow = routes.map(([each]) => (each === 'GET' ? 'GET, HEAD' : each)).join(', ')
  const message = `${shorten(method)} is not allowed on this path. Use ${allow}.`
  const error = new InoriginError('method_not_allowed', message)
  return errorResponse(error, requestId, { headers: { allow } })
}

/**
 * Returns the response to a request with a method that no `Request` can have, such as TRACE: a 405
 * with the methods of the path.
 *
 * @throws InoriginError `not_found` for a path that is no endpoint.
 */
export const refuseForbiddenMethod = (
  request: Pick<Request, 'method' | 'url'>,
  requestId: string,
): Response =>
  refuseMethod(request.method, findRoutes(pathBelow('/v1', request), request), requestId)

function matchPath(pattern: string, path: string): RegExpExecArray | null {
  return new RegExp(`^${pattern}$`).exec(path)
}

/** Decodes each run of escapes in a path. A run that is not UTF-8 stays as it is. */
function decodePath(path: string): string {
  return path.replaceAll(/(?:%[0-9a-f]{2})+/gi, (escapes) => {
    try {
      return decodeURIComponent(escapes)
    } catch {
      return escapes
    }
  })
}

function throwNoEndpoint(
  { method, url }: Pick<Request, 'method' | 'url'>,
  path: string | null,
): never {
  const paths = [...new Set(ROUTES.map(([, each]) => toDocumentedPath(each)))].slice(1).join(', ')
  const endpoint = `${shorten(method)} ${shorten(new URL(url).pathname)}`
  const [, instead] = REPLACEMENTS.find(([other]) => other.test(path ?? '')) ?? []
  const todo = instead ? `use ${instead}. The endpoints are ${paths}` : `use ${paths}`
  throw new InoriginError('not_found', `${endpoint} is not an endpoint here; ${todo}.`)
}
