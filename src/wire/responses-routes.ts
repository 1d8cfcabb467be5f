/** Routes of `/v1/responses`: create a response, read a stored one and its input, end or delete it. */
import * as v from 'valibot'
import { InoriginError } from '../error.ts'
import type {
  BackgroundLog,
  BackgroundResponse,
  StoredItem,
  StoredResponse,
} from '../types/index.ts'
import { isObject } from '../values/objects.ts'
import { shorten } from '../values/text.ts'
import { type ParsedBody, readBody } from './body.ts'
import { invalidRequest } from './errors.ts'
import { toBodyFields } from './fields.ts'
import { createId, nowInSeconds } from './http.ts'
import { keepItems, summarize, toCompactionItem } from './compaction.ts'
import { getModel, toPageJson } from './models.ts'
import { type EventEncoder, jsonEncoder } from './response-body.ts'
import {
  COMPACTION_PREFIX,
  findResponseId,
  RESPONSE_PREFIX,
  type ResponseJson,
  responseJsonEncoder,
  ResponseEncoder,
  toUsageJson,
} from './responses-encoder.ts'
import {
  asksForCompaction,
  compactionBodySchema,
  findCompactionConflict,
  findResponsesConflict,
  type InputItem,
  itemsSchema,
  parseResponses,
  type ResponsesBody,
  responsesBodySchema,
} from './responses.ts'
import { assertCallsExist } from './responses-tools.ts'
import {
  countResponse,
  eventResponse,
  jsonResponse,
  type ParsedRequest,
  parseRoute,
  respondWithGeneration,
  rethrowWithBodyFieldNames,
  type RouteContext,
  type RouteEntry,
  type RouteHandler,
} from './route.ts'
import { argumentsText } from './tools.ts'

// Builds the conversation of a response from stored items and the new input.

type RawItem = Readonly<Record<string, unknown>>
type HostContext = Pick<RouteContext, 'host' | 'caller'>

/**
 * Resolves with the input of a body, each reference replaced by its item, and with the same items in
 * the form in which they are stored. Rejects with a remedy when an item is not stored.
 */
async function resolveInput(
  { fields, sent }: Pick<ParsedBody<ResponsesBody>, 'fields' | 'sent'>,
  context: HostContext,
) {
  const { input, previous_response_id: previous } = fields
  const sentItems = toRawItems(sent)
  const previousItems = previous ? await loadPreviousItems(previous, context) : []
  const storedById = await loadReferencedItems(sentItems, context)
  const items: InputItem[] = [
    ...parseItems(previousItems).map((item) => ({ item, path: 'previous_response_id' })),
    ...(typeof input === 'string'
      ? [{ item: { role: 'user' as const, content: input }, path: 'input' }]
      : input.map((item, index) => ({
          item: (isReference(item) && parseItems([storedById.get(item.id)])[0]) || item,
          path: `input[${index}]`,
        }))),
  ]
  const ownItems = sentItems.map(
    (item) => (isReference(item) && storedById.get(item['id'])) || withIdAndType(item),
  )
  const stored = [...previousItems, ...ownItems]
  // Clients that send the whole conversation may have cut it.
  if (previous) assertCallsExist(stored, previousItems.length)
  return { items, stored }
}

/** Resolves with all items of a stored response: its input and its output. */
async function loadPreviousItems(previous: string, context: HostContext): Promise<StoredItem[]> {
  const response = await findResponse(previous, context)
  if (response) {
    assertFinished(response)
    return [...response.input, ...response.output]
  }
  const what = `Previous response with id '${shorten(previous)}' not found. ${REMEDY}`
  throw invalidRequest(what, 'previous_response_not_found', 'previous_response_id')
}

/** Resolves with the stored items that the input refers to, by id. */
async function loadReferencedItems(sentItems: readonly RawItem[], context: HostContext) {
  const { host, caller } = context
  const paramById = new Map<string, string>()
  for (const [index, item] of sentItems.entries()) {
    if (!isReference(item)) continue
    const param = `input[${index}].id`
    // A short body with many references to one item could expand to any amount of text.
    if (paramById.has(item.id)) {
      const what = `Duplicate item found with id '${shorten(item.id)}'. Remove it from the input.`
      throw invalidRequest(what, 'duplicate_item', param)
    }
    paramById.set(item.id, param)
  }
  const found = paramById.size > 0 ? await host.getStoredItems([...paramById.keys()], caller) : []
  const storedById = new Map<unknown, StoredItem>()
  for (const [index, [itemId, param]] of [...paramById].entries()) {
    const item = found[index] ?? (await findBackgroundItem(itemId, context))
    if (item) storedById.set(itemId, item)
    else {
      const what = `Item with id '${shorten(itemId)}' not found. ${REMEDY}`
      throw new InoriginError('not_found', what, { code: 'item_not_found', param })
    }
  }
  return storedById
}

const getStoredResponse = async (name: string, context: HostContext): Promise<StoredResponse> =>
  (await findResponse(name, context)) ?? throwNotStored(name)

function throwNotStored(name: string): never {
  const what = `Response with id '${shorten(name)}' not found. ${STORAGE_NOTE}`
  throw new InoriginError('not_found', what, { code: 'response_not_found' })
}

const STORAGE_NOTE =
  'Responses are stored in memory, per API key, until the last tab of the app is closed or the ' +
  'memory is needed. Only those with background: true are stored on disk, until they are ' +
  'deleted or make room for newer ones. A response that reports store: false is not stored: ' +
  'either the request said so, or the response is too large.'
const REMEDY = `${STORAGE_NOTE} Send the items themselves, as clients do with store: false.`

const isReference = (item: RawItem): item is RawItem & { id: string } =>
  item['type'] === 'item_reference' && typeof item['id'] === 'string'

function toRawItems(sent: unknown): readonly RawItem[] {
  const given = isObject(sent) ? (sent['input'] ?? []) : []
  return Array.isArray(given) ? given.filter(isObject) : [{ role: 'user', content: given }]
}

/** Parses stored items. */
function parseItems(items: ReadonlyArray<StoredItem | undefined>) {
  const storedById = items.flatMap((item) => (item ? [repairArguments(item)] : []))
  const result = v.safeParse(itemsSchema, storedById)
  if (result.success) return result.output
  throw new InoriginError('internal', 'A stored item is not valid.')
}

/** Replaces arguments that exceed the limits of a body by `{}`. A model may have written them. */
function repairArguments(item: StoredItem): RawItem {
  if (item['type'] !== 'function_call' || v.safeParse(argumentsText, item['arguments']).success)
    return item
  return { ...item, arguments: '{}' }
}

const PREFIX: Readonly<Record<string, string>> = {
  message: 'msg_',
  function_call: 'fc_',
  function_call_output: 'fco_',
  reasoning: 'rs_',
}

/** Completes an item to the form that lists of items use: an id, a type, and text in a part. */
function withIdAndType(item: RawItem): StoredItem {
  const type = String(item['type'] ?? 'message')
  const { role, content } = item
  const part =
    role === 'assistant' ? { type: 'output_text', annotations: [] } : { type: 'input_text' }
  return {
    ...item,
    type,
    ...(typeof content === 'string' && { content: [{ ...part, text: content }] }),
    id: typeof item['id'] === 'string' ? item['id'] : createId(PREFIX[type] ?? 'item_'),
  }
}

/** Milliseconds to wait for the host to store a response before it is sent without. */
const STORE_TIMEOUT_MS = 2_000

async function parseRequest(context: RouteContext) {
  const body = await readBody(context, responsesBodySchema, findResponsesConflict)
  const { items, stored } = await resolveInput(body, context)
  const { tools, ...parsed } = parseResponses(body, items)
  return { parsed, fields: { ...body.fields, tools: [...tools] }, stored }
}

const createResponse: RouteHandler = async (context) => {
  const { parsed, fields, stored } = await parseRequest(context)
  if (fields.background) return respondInBackground(parsed, fields, stored, context)
  const store = fields.store === false ? undefined : createResponseStore(stored, context)
  const encoder = fields.stream
    ? new ResponseEncoder(fields, { store })
    : responseJsonEncoder(fields, store)
  return asksForCompaction(fields)
    ? respondWithSummary(parsed, encoder, context)
    : respondWithGeneration(parsed, encoder, context)
}

/** Returns a function that stores a response. It resolves with `false` instead of rejecting. */
function createResponseStore(input: readonly StoredItem[], { host, caller: own }: HostContext) {
  const { key, client } = own
  return async (body: ResponseJson): Promise<boolean> => {
    // The request's own signal is not used: a client that left may later refer to the response.
    const signal = AbortSignal.timeout(STORE_TIMEOUT_MS)
    const caller = { key, signal, ...(client !== undefined && { client }) }
    const { id, output } = body
    return host.storeResponse({ id, body, input, output }, caller).catch(() => false)
  }
}

/** Has the model summarize a conversation, and responds with the items that stand for it. */
const compactResponse: RouteHandler = async (context) => {
  const { fields, ...body } = await readBody(context, compactionBodySchema, findCompactionConflict)
  const compacted = { ...body, fields: { ...fields, input: fields.input ?? [] } }
  const { items, stored } = await resolveInput(compacted, context)
  const encoder = jsonEncoder(([summary], { usage }) => {
    const text = summary && 'text' in summary ? summary.text : ''
    const { before, after } = keepItems(stored)
    return {
      id: createId(RESPONSE_PREFIX),
      object: 'response.compaction',
      created_at: nowInSeconds(),
      output: [...before, toCompactionItem(createId(COMPACTION_PREFIX), text), ...after],
      usage: toUsageJson(usage),
    }
  })
  return respondWithSummary(parseResponses(compacted, items), encoder, context)
}

/** Has the model summarize the conversation of a request. */
async function respondWithSummary(
  { request, fieldNames, ignored }: ParsedRequest,
  encoder: EventEncoder,
  context: RouteContext,
): Promise<Response> {
  const { host, caller } = context
  const { maxInputTokens } = getModel(await host.models(caller), request.model)
  const events = summarize({ ...request, ...parseRoute(context) }, maxInputTokens, (each) =>
    host.generate(each, caller),
  )
  return eventResponse(Promise.resolve({ events }), encoder, context, ignored, fieldNames)
}

const countInputTokens: RouteHandler = async (context) => {
  const { parsed } = await parseRequest(context)
  return countResponse(parsed, context, { object: 'response.input_tokens' })
}

const getResponse: RouteHandler = async (context) => {
  const { request, param, host, caller } = context
  const query = new URL(request.url).searchParams
  if (query.get('stream') !== 'true')
    return jsonResponse((await getStoredResponse(param, context)).body)
  if (!(await host.getStoredResponse(param, caller)))
    return followResponse(param, toSequenceNumber(query), context)
  const what = 'Only responses that were created with background: true can be streamed again.'
  throw invalidRequest(`${what} Leave \`stream\` out.`, 'unsupported_parameter', 'stream')
}

/** Returns the sequence number after which a stream starts; -1 for the whole stream. */
function toSequenceNumber(query: URLSearchParams): number {
  const after = query.get('starting_after')
  if (after === null) return -1
  if (/^\d{1,15}$/.test(after)) return Number(after)
  throw invalidQuery('starting_after', 'an integer of at least 0', after)
}

const cancelResponse: RouteHandler = async (context) => {
  const { param, host, caller } = context
  const isCanceled = await host.cancelBackground(param, caller)
  const { body } = await getStoredResponse(param, context)
  if (isCanceled) return jsonResponse(body)
  const what = 'Only responses that were created with background: true can be canceled.'
  throw invalidRequest(`${what} Abort the request instead.`, 'not_in_background')
}

const deleteResponse: RouteHandler = async ({ param: id, host, caller }) => {
  const isDeleted =
    (await host.deleteStoredResponse(id, caller)) || (await host.deleteBackground(id, caller))
  if (!isDeleted) throwNotStored(id)
  return jsonResponse({ id, object: 'response', deleted: true })
}

/** Responds with one page of the items, by default the last item first. */
const listInputItems: RouteHandler = async (context) => {
  const { input: items } = await getStoredResponse(context.param, context)
  const query = new URL(context.request.url).searchParams
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
  return jsonResponse(toPageJson(data, data.length < rest.length))
}

const DEFAULT_PAGE_ITEMS = 20

function invalidQuery(param: string, what: string, sent: string): InoriginError {
  const message = `\`${param}\` must be ${what}, not ${JSON.stringify(sent.slice(0, 60))}.`
  return invalidRequest(message, 'invalid_value', param)
}

export const responsesRoutes: readonly RouteEntry[] = [
  ['POST', '/responses', createResponse],
  ['POST', '/responses/input_tokens', countInputTokens],
  ['POST', '/responses/compact', compactResponse],
  ['GET', '/responses/([^/]+)', getResponse],
  ['DELETE', '/responses/([^/]+)', deleteResponse],
  ['POST', '/responses/([^/]+)/cancel', cancelResponse],
  ['GET', '/responses/([^/]+)/input_items', listInputItems],
]

// Background responses. The host stores their events, not their text, and each reader gets these
// events encoded anew. So all readers see the same ids and sequence numbers.

/** Has the host compute a response in the background. Responds with it, queued, or streams it. */
async function respondInBackground(
  { request, fieldNames, ignored }: ParsedRequest,
  fields: ResponsesBody,
  input: readonly StoredItem[],
  context: RouteContext,
): Promise<Response> {
  const { host, caller } = context
  // The input is stored as items, so its copy in the fields would only take up room.
  const { input: _, ...repeatedFields } = fields
  const response: BackgroundResponse = {
    id: createId(RESPONSE_PREFIX),
    createdAt: nowInSeconds(),
    request: { ...request, ...parseRoute(context) },
    fields: repeatedFields,
    input,
  }
  const created = await host
    .createBackground(response, caller)
    .catch(rethrowWithBodyFieldNames(fieldNames))
  const ignoredFields = [...ignored, ...toBodyFields(fieldNames, created.ignored)]
  if (fields.stream) return followResponse(response.id, -1, context, ignoredFields)
  return jsonResponse(encodeLog({ response, events: [{ type: 'queued' }] }), ignoredFields)
}

/** Streams the events of a background response after the sequence number `after`. */
async function followResponse(
  responseId: string,
  after: number,
  context: RouteContext,
  ignored: readonly string[] = [],
): Promise<Response> {
  const { host, caller } = context
  const background = await host.followBackground(responseId, 0, caller)
  return eventResponse(
    Promise.resolve(background),
    openEncoder(background.response, after),
    context,
    ignored,
  )
}

/** Returns the background response as far as it is computed. */
function encodeLog({ response, events }: BackgroundLog): ResponseJson {
  const encoder = openEncoder(response, Infinity)
  for (const event of events) encoder.encode(event)
  return encoder.snapshot
}

function openEncoder({ id, createdAt, fields }: BackgroundResponse, after: number) {
  // This file wrote the fields, of a body that passed its schema.
  return new ResponseEncoder(fields as ResponsesBody, { background: { id, createdAt }, after })
}

/** Resolves with a response that is stored in memory or in the background; `null` if none is. */
async function findResponse(
  responseId: string,
  { host, caller }: HostContext,
): Promise<StoredResponse | null> {
  const stored = await host.getStoredResponse(responseId, caller)
  if (stored) return stored
  const log = await host.getBackground(responseId, caller)
  if (!log) return null
  const body = encodeLog(log)
  return { id: responseId, body, input: log.response.input, output: body.output }
}

/** Resolves with an output item of a background response; `null` if there is none with that id. */
async function findBackgroundItem(
  itemId: string,
  { host, caller }: HostContext,
): Promise<StoredItem | null> {
  const responseId = findResponseId(itemId)
  const log = responseId === null ? null : await host.getBackground(responseId, caller)
  return (log && encodeLog(log).output.find((item) => item.id === itemId)) ?? null
}

/** Throws if a response is not finished, so that its output is not complete. */
function assertFinished({ id: responseId, body }: StoredResponse): void {
  const { status } = body
  if (status !== 'queued' && status !== 'in_progress') return
  const what = `Response with id '${shorten(responseId)}' is ${status}.`
  const message = `${what} Wait until it is finished, or cancel it.`
  throw invalidRequest(message, 'response_not_finished', 'previous_response_id')
}
