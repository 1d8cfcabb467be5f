/** Routes of `/v1/responses`: create a response, read a stored one and its input, end or delete it. */
import { InoriginError } from '../error.ts'
import type { Caller, Host, StoredItem } from '../types/index.ts'
import { followResponse, respondInBackground, toEncoderOptions } from './background.ts'
import { readBody } from './body.ts'
import { toPageJson } from './models.ts'
import {
  getStoredResponse,
  resolveInput,
  throwNotStored,
  type ResolvedInput,
} from './resolve-input.ts'
import type { ResponseJson } from './response-json.ts'
import { responseJsonEncoder, responseStreamEncoder } from './responses-encoder.ts'
import {
  findResponsesConflict,
  ignoredByResponses,
  responsesBodySchema,
  responsesFieldNames,
  toResponsesRequest,
} from './responses.ts'
import {
  countPromptTokens,
  jsonResponse,
  respondWithGeneration,
  type RouteEntry,
  type RouteContext,
  type RouteHandler,
} from './route.ts'

/** Milliseconds to wait for the host to store a response before it is sent without. */
const STORE_TIMEOUT_MS = 2_000

async function parseResponsesRequest(context: RouteContext) {
  const { fields, sent, ignored } = await readBody(
    context,
    responsesBodySchema,
    findResponsesConflict,
  )
  const resolved = await resolveInput(fields, sent, context.host, context.caller)
  return {
    fields,
    resolved,
    request: toResponsesRequest(fields, resolved.items),
    fieldNames: responsesFieldNames(fields),
    ignored: [...ignored, ...ignoredByResponses(fields)],
  }
}

const createResponse: RouteHandler = async (context) => {
  const { fields, resolved, ...parsed } = await parseResponsesRequest(context)
  if (fields.background) return respondInBackground(parsed, fields, resolved.stored, context)
  const store = createResponseStore(resolved, context.host, context.caller)
  const options = { ...toEncoderOptions(fields), ...(fields.store !== false && { store }) }
  const encoder = fields.stream ? responseStreamEncoder(options) : responseJsonEncoder(options)
  return respondWithGeneration(parsed, encoder, context)
}

/**
 * Returns a function that stores a response with its whole input. It resolves with `false` instead
 * of rejecting, so that the response never fails because of it.
 */
function createResponseStore(
  { stored: input }: ResolvedInput,
  host: Host,
  { key, client }: Caller,
) {
  return async (body: ResponseJson): Promise<boolean> => {
    // The request's own signal is not used: a client that left may later refer to the response.
    const signal = AbortSignal.timeout(STORE_TIMEOUT_MS)
    const caller = { key, signal, ...(client !== undefined && { client }) }
    const { id, output } = body
    return host.storeResponse({ id, body, input, output }, caller).catch(() => false)
  }
}

const countInputTokens: RouteHandler = async (context) => {
  const parsed = await parseResponsesRequest(context)
  const input_tokens = await countPromptTokens(parsed, context)
  return jsonResponse({ object: 'response.input_tokens', input_tokens }, parsed.ignored)
}

const getResponse: RouteHandler = async (context) => {
  const { request, param, host, caller } = context
  const query = new URL(request.url).searchParams
  if (query.get('stream') !== 'true')
    return jsonResponse((await getStoredResponse(param, host, caller)).body)
  if (!(await host.getStoredResponse(param, caller)))
    return followResponse(param, toSequenceNumber(query), context)
  const what = 'Only responses that were created with background: true can be streamed again.'
  throw new InoriginError('invalid_request', `${what} Leave \`stream\` out.`, {
    code: 'unsupported_parameter',
    param: 'stream',
  })
}

/** Returns the sequence number after which a stream starts; -1 for the whole stream. */
function toSequenceNumber(query: URLSearchParams): number {
  const after = query.get('starting_after')
  if (after === null) return -1
  if (/^\d{1,15}$/.test(after)) return Number(after)
  throw invalidQuery('starting_after', 'an integer of at least 0', after)
}

const cancelResponse: RouteHandler = async ({ param, host, caller }) => {
  const isCanceled = await host.cancelBackground(param, caller)
  const { body } = await getStoredResponse(param, host, caller)
  if (isCanceled) return jsonResponse(body)
  const what = 'Only responses that were created with background: true can be canceled.'
  throw new InoriginError('invalid_request', `${what} Abort the request instead.`, {
    code: 'not_in_background',
  })
}

const deleteResponse: RouteHandler = async ({ param: id, host, caller }) => {
  const isDeleted =
    (await host.deleteStoredResponse(id, caller)) || (await host.deleteBackground(id, caller))
  if (!isDeleted) throwNotStored(id)
  return jsonResponse({ id, object: 'response', deleted: true })
}

const listInputItems: RouteHandler = async ({ request, param, host, caller }) => {
  const { input } = await getStoredResponse(param, host, caller)
  return jsonResponse(toItemPage(input, new URL(request.url).searchParams))
}

/** Returns one page of the items, by default the last item first. */
function toItemPage(items: readonly StoredItem[], query: URLSearchParams) {
  const order = query.get('order') ?? 'desc'
  if (order !== 'asc' && order !== 'desc') throw invalidQuery('order', 'asc or desc', order)
  const limit = query.get('limit') ?? String(DEFAULT_PAGE_ITEMS)
  if (!/^[1-9]\d?$|^100$/.test(limit))
    throw invalidQuery('limit', 'an integer from 1 to 100', limit)
  const ordered = order === 'asc' ? items : items.toReversed()
  const after = query.get('after')
  const from = after === null ? 0 : ordered.findIndex(({ id }) => id === after) + 1
  const rest = after !== null && from === 0 ? [] : ordered.slice(from)
  const data = rest.slice(0, Number(limit))
  return toPageJson(data, data.length < rest.length)
}

const DEFAULT_PAGE_ITEMS = 20

function invalidQuery(param: string, what: string, sent: string): InoriginError {
  const message = `\`${param}\` must be ${what}, not ${JSON.stringify(sent.slice(0, 60))}.`
  return new InoriginError('invalid_request', message, { code: 'invalid_value', param })
}

export const responsesRoutes: readonly RouteEntry[] = [
  ['POST', '/responses', createResponse],
  ['POST', '/responses/input_tokens', countInputTokens],
  ['GET', '/responses/([^/]+)', getResponse],
  ['DELETE', '/responses/([^/]+)', deleteResponse],
  ['POST', '/responses/([^/]+)/cancel', cancelResponse],
  ['GET', '/responses/([^/]+)/input_items', listInputItems],
]
