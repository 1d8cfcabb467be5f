/**
 * Background responses. The host stores their events, not their text, and each reader gets these
 * events encoded anew. So all readers see the same ids and sequence numbers.
 */
import { InoriginError } from '../error.ts'
import type {
  BackgroundLog,
  BackgroundResponse,
  Caller,
  Host,
  StoredItem,
  StoredResponse,
} from '../types/index.ts'
import { toBodyFields } from './field-names.ts'
import { id, nowInSeconds } from './id.ts'
import {
  findResponseId,
  RESPONSE_PREFIX,
  type ResponseEncoderOptions,
  type ResponseJson,
} from './response-json.ts'
import { responseStreamEncoder, type ResponseStreamEncoder } from './responses-encoder.ts'
import {
  includesEncryptedReasoning,
  toResponsesReasoning,
  toTopLogprobs,
  type ResponsesBody,
} from './responses.ts'
import {
  eventResponse,
  jsonResponse,
  parseRoute,
  rethrowWithBodyFieldNames,
  type ParsedRequest,
  type RouteContext,
} from './route.ts'
import { shorten } from '../values/shorten.ts'

/** Returns the options of the encoder that follow from the body of the request. */
export function toEncoderOptions(fields: ResponsesBody): ResponseEncoderOptions {
  return {
    requestBody: fields,
    reasoning: toResponsesReasoning(fields).shown,
    logprobs: toTopLogprobs(fields) !== undefined,
    encryptReasoning: includesEncryptedReasoning(fields),
  }
}

/** Has the host compute a response in the background. Responds with it, queued, or streams it. */
export async function respondInBackground(
  { request, fieldNames, ignored }: ParsedRequest,
  fields: ResponsesBody,
  input: readonly StoredItem[],
  context: RouteContext,
): Promise<Response> {
  const { host, caller } = context
  // The input is stored as items, so its copy in the fields would only take up room.
  const { input: _, ...repeatedFields } = fields
  const response: BackgroundResponse = {
    id: id(RESPONSE_PREFIX),
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
export async function followResponse(
  responseId: string,
  after: number,
  context: RouteContext,
  ignored: readonly string[] = [],
): Promise<Response> {
  const { host, caller } = context
  const background = await host.followBackground(responseId, 0, caller)
  return eventResponse(background, openEncoder(background.response, after), context, ignored)
}

/** Returns the background response as far as it is computed. */
export function encodeLog({ response, events }: BackgroundLog): ResponseJson {
  const encoder = openEncoder(response, Infinity)
  for (const event of events) encoder.encode(event)
  return encoder.snapshot()
}

function openEncoder(
  { id: responseId, createdAt, fields }: BackgroundResponse,
  after: number,
): ResponseStreamEncoder {
  // This file wrote the fields, of a body that passed its schema.
  const options = toEncoderOptions(fields as ResponsesBody)
  return responseStreamEncoder({ ...options, background: { id: responseId, createdAt, after } })
}

/** Resolves with a response that is stored in memory or in the background; `null` if none is. */
export async function findResponse(
  responseId: string,
  host: Host,
  caller: Caller,
): Promise<StoredResponse | null> {
  const stored = await host.getStoredResponse(responseId, caller)
  if (stored) return stored
  const log = await host.getBackground(responseId, caller)
  if (!log) return null
  const body = encodeLog(log)
  return { id: responseId, body, input: log.response.input, output: body.output }
}

/** Resolves with an output item of a background response; `null` if there is none with that id. */
export async function findBackgroundItem(
  itemId: string,
  host: Host,
  caller: Caller,
): Promise<StoredItem | null> {
  const responseId = findResponseId(itemId)
  const log = responseId === null ? null : await host.getBackground(responseId, caller)
  return (log && encodeLog(log).output.find((item) => item.id === itemId)) ?? null
}

/** Throws if a response is not finished, so that its output is not complete. */
export function assertFinished({ id: responseId, body }: StoredResponse): void {
  const { status } = body
  if (status !== 'queued' && status !== 'in_progress') return
  const what = `Response with id '${shorten(responseId)}' is ${status}.`
  throw new InoriginError('invalid_request', `${what} Wait until it is finished, or cancel it.`, {
    code: 'response_not_finished',
    param: 'previous_response_id',
  })
}
