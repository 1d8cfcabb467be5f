/** Routes of `/v1/responses`: create a response, read a stored one and its input, delete it. */
import { InoriginError } from '../error.ts'
import type { Caller, Host, KeptItem } from '../types/index.ts'
import { readBody } from './body.ts'
import { conversationOf, notKept, responseCalled } from './conversation.ts'
import type { Conversation } from './conversation.ts'
import { responseJson, responseStream } from './responses-answer.ts'
import type { ResponseBody } from './responses-answer.ts'
import {
  ignoredByResponses,
  logprobsOf,
  responsesBody,
  responsesPlaces,
  responsesReasoning,
  responsesRequest,
  wantsSeals,
} from './responses.ts'
import { countTokens, generate, ignoredHeader, json } from './route.ts'
import type { Answer, Bindings, Route } from './route.ts'

/** Milliseconds to wait for the host to store a response before it is sent without. */
const PATIENCE = 2_000

async function read(request: Request, { host, caller }: Bindings) {
  const { fields, sent, ignored } = await readBody(request, responsesBody, host, caller)
  const conversation = await conversationOf(fields, sent, host, caller)
  ignored.push(...ignoredByResponses(fields))
  return {
    fields,
    conversation,
    request: responsesRequest(fields, conversation.items),
    places: responsesPlaces(fields),
    ignored,
  }
}

const create: Answer = async ({ req, env }) => {
  const { fields, conversation, ...rest } = await read(req.raw, env)
  const keep = keeper(conversation, env.host, env.caller)
  const telling = {
    asked: fields,
    reasoning: responsesReasoning(fields).shown,
    logprobs: logprobsOf(fields) !== undefined,
    sealed: wantsSeals(fields),
    ...(fields.store !== false && { keep }),
  }
  const encoder = fields.stream ? responseStream(telling) : responseJson(telling)
  return generate(rest, encoder, env)
}

/**
 * Returns a function that stores a response with its whole input. It resolves with `false` instead
 * of rejecting, so that the response never fails because of it.
 */
function keeper({ kept: input }: Conversation, host: Host, { key, client }: Caller) {
  return async (body: ResponseBody): Promise<boolean> => {
    // The request's own signal is not used: a client that left may later refer to the response.
    const signal = AbortSignal.timeout(PATIENCE)
    const caller = { key, signal, ...(client !== undefined && { client }) }
    const { id, output } = body
    return host.keepResponse({ id, body, input, output }, caller).catch(() => false)
  }
}

const count: Answer = async ({ req, env }) => {
  const question = await read(req.raw, env)
  const input_tokens = await countTokens(question, env)
  return json({ object: 'response.input_tokens', input_tokens }, ignoredHeader(question.ignored))
}

const show: Answer = async ({ req, env: { host, caller } }) => {
  const { body } = await responseCalled(req.param('id') ?? '', host, caller)
  if (req.query('stream') !== 'true') return json(body)
  const what = '`stream` = "true" is not supported by this server; leave it out.'
  throw new InoriginError('invalid_request', what, {
    code: 'unsupported_parameter',
    param: 'stream',
  })
}

const forget: Answer = async ({ req, env: { host, caller } }) => {
  const id = req.param('id') ?? ''
  if (!(await host.forgetResponse(id, caller))) notKept(id)
  return json({ id, object: 'response', deleted: true })
}

const showInput: Answer = async ({ req, env: { host, caller } }) => {
  const { input } = await responseCalled(req.param('id') ?? '', host, caller)
  return json(page(input, new URL(req.url).searchParams))
}

/** Returns one page of the items, by default the last item first. */
function page(items: readonly KeptItem[], query: URLSearchParams) {
  const order = query.get('order') ?? 'desc'
  if (order !== 'asc' && order !== 'desc') throw wrong('order', 'asc or desc', order)
  const limit = query.get('limit') ?? String(USUAL)
  if (!/^[1-9]\d?$|^100$/.test(limit)) throw wrong('limit', 'an integer from 1 to 100', limit)
  const ordered = order === 'asc' ? items : items.toReversed()
  const after = query.get('after')
  const from = after === null ? 0 : ordered.findIndex(({ id }) => id === after) + 1
  const rest = after !== null && from === 0 ? [] : ordered.slice(from)
  const data = rest.slice(0, Number(limit))
  return {
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: data.length < rest.length,
  }
}

const USUAL = 20

function wrong(param: string, what: string, sent: string): InoriginError {
  const message = `\`${param}\` must be ${what}, not ${JSON.stringify(sent.slice(0, 60))}.`
  return new InoriginError('invalid_request', message, { code: 'invalid_value', param })
}

export const responsesRoutes: readonly Route[] = [
  ['POST', '/responses', create],
  ['POST', '/responses/input_tokens', count],
  ['GET', '/responses/:id', show],
  ['DELETE', '/responses/:id', forget],
  ['GET', '/responses/:id/input_items', showInput],
]
