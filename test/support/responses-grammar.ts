import {
  checkUsage,
  constant,
  count,
  ensure,
  fail,
  keys,
  object,
  oneOf,
  parseFrames,
  parseObject,
  text,
} from './sse-grammar.ts'
import type { Fields } from './sse-grammar.ts'

export interface ResponseItem {
  id: string
  type: string
  /** Text, thoughts, or the arguments or the input of a call. */
  text: string
  callId: string
  name: string
  status: string
}

export interface ResponseTranscript {
  items: ResponseItem[]
  /** The whole at the end; `null` where the stream failed. */
  response: Fields | null
  error: Fields | null
}

/** Events of an item of each type, in order. */
const COURSES = {
  message: ['content_part.added', 'output_text.delta', 'output_text.done', 'content_part.done'],
  reasoning: [
    'reasoning_summary_part.added',
    'reasoning_summary_text.delta',
    'reasoning_summary_text.done',
    'reasoning_summary_part.done',
  ],
  function_call: ['function_call_arguments.delta', 'function_call_arguments.done'],
  custom_tool_call: ['custom_tool_call_input.delta', 'custom_tool_call_input.done'],
} as const
const PREFIX = {
  message: 'msg_',
  reasoning: 'rs_',
  function_call: 'fc_',
  custom_tool_call: 'ctc_',
} as const
type Type = keyof typeof COURSES

/** Fields of each event of an item, beside those that all have. */
const PLACES: Readonly<Record<string, string>> = {
  'content_part.added': 'content_index part',
  'output_text.delta': 'content_index delta logprobs',
  'output_text.done': 'content_index text logprobs',
  'content_part.done': 'content_index part',
  'reasoning_summary_part.added': 'summary_index part',
  'reasoning_summary_text.delta': 'summary_index delta',
  'reasoning_summary_text.done': 'summary_index text',
  'reasoning_summary_part.done': 'summary_index part',
  'function_call_arguments.delta': 'delta',
  'function_call_arguments.done': 'name arguments',
  'custom_tool_call_input.delta': 'delta',
  'custom_tool_call_input.done': 'input',
}

/**
 * Reads a whole raw stream of response events and throws on the first thing out of place: created, in
 * progress, items one after the other, each opened, told and closed, and the whole at the end. One
 * that was `cut` need not end.
 */
export function checkResponseStream(raw: string, { cut: torn = false } = {}): ResponseTranscript {
  const seen: ResponseTranscript = { items: [], response: null, error: null }
  let stage = 'start' as 'start' | 'progress' | 'items' | 'closed'
  let open: ResponseItem | null = null
  let step = -1
  let id: unknown

  const whole = (data: Fields, status: string): Fields => {
    const { response } = keys(data, 'event', 'type sequence_number response')
    const checked = checkResponse(response)
    id ??= checked['id']
    ensure(checked['id'] === id, 'another id')
    oneOf(checked['status'], 'status', [status])
    return checked
  }

  const within = (item: ResponseItem, name: string, data: Fields): void => {
    const course: readonly string[] = COURSES[item.type as Type]
    const place = course.indexOf(name)
    const again = place === step && name.endsWith('.delta')
    const optional = course[step + 1]?.endsWith('.delta') && place === step + 2
    ensure(again || place === step + 1 || Boolean(optional), `${name} where it cannot be`)
    step = place
    keys(data, name, `type sequence_number output_index item_id ${PLACES[name]}`)
    ensure(data['output_index'] === seen.items.length - 1, 'output_index')
    ensure(data['item_id'] === item.id, 'item_id')
    for (const index of ['content_index', 'summary_index']) oneOf(data[index] ?? 0, index, [0])
    // Tokens of a character that is not whole have no text.
    const cut = name === 'output_text.delta' && String(data['logprobs']) !== ''
    if (name.endsWith('.delta') && !(cut && data['delta'] === ''))
      item.text += text(data['delta'], 'delta')
    if (name.endsWith('_text.done')) ensure(data['text'] === item.text, 'text is not its deltas')
    if (name === 'function_call_arguments.done') {
      ensure(data['arguments'] === item.text, 'arguments are not their deltas')
      ensure(data['name'] === item.name, 'another name')
    }
    if (name === 'custom_tool_call_input.done')
      ensure(data['input'] === item.text, 'the input is not its deltas')
    if (name.includes('output_text')) ensure(Array.isArray(data['logprobs']), 'logprobs')
    if (name.endsWith('part.added'))
      ensure(checkPart(data['part'], item.type) === '', 'a part begins with text')
    if (name.endsWith('part.done')) ensure(checkPart(data['part'], item.type) === item.text, 'part')
  }

  for (const [number, frame] of parseFrames(raw, torn).entries()) {
    ensure(stage !== 'closed', 'something after the end')
    const data = parseObject(frame.data)
    ensure(frame.event === data['type'] && frame.event !== null, 'the event name is not the type')
    ensure(data['sequence_number'] === number, 'sequence_number')
    const name = frame.event.replace(/^response\./, '')
    if (name === 'error') {
      seen.error = keys(data, 'error', 'type sequence_number message code param error')
      text(data['message'], 'message')
      stage = 'closed'
    } else if (stage === 'start') {
      oneOf(name, 'the first event', ['created'])
      whole(data, 'in_progress')
      stage = 'progress'
    } else if (stage === 'progress') {
      oneOf(name, 'the second event', ['in_progress'])
      whole(data, 'in_progress')
      stage = 'items'
    } else if (name === 'output_item.added') {
      ensure(open === null, 'an item within another')
      keys(data, name, 'type sequence_number output_index item')
      ensure(data['output_index'] === seen.items.length, 'output_index')
      open = checkItem(data['item'])
      ensure(open.text === '', 'an item begins with text')
      ensure(open.type === 'reasoning' || open.status === 'in_progress', 'status of a new item')
      seen.items.push(open)
      step = -1
    } else if (name === 'output_item.done') {
      const item = open ?? fail('the end of no item')
      keys(data, name, 'type sequence_number output_index item')
      ensure(data['output_index'] === seen.items.length - 1, 'output_index')
      ensure(step === COURSES[item.type as Type].length - 1, 'an item that is not over')
      const done = checkItem(data['item'])
      ensure(done.text === item.text && done.id === item.id, 'the item is not what was told')
      item.status = done.status
      open = null
    } else if (name === 'completed' || name === 'incomplete') {
      ensure(open === null && seen.items.length > 0, `${name} where it cannot be`)
      seen.response = whole(data, name)
      const output = (seen.response['output'] as unknown[]).map(checkItem)
      ensure(JSON.stringify(output) === JSON.stringify(seen.items), 'output is not what was told')
      stage = 'closed'
    } else within(open ?? fail(`${name} outside of an item`), name, data)
  }
  ensure(torn || stage === 'closed', 'the stream ended without the whole')
  return seen
}

function checkItem(value: unknown): ResponseItem {
  const { id, type, status = '' } = object(value, 'item')
  oneOf(type, 'item type', Object.keys(COURSES))
  ensure(text(id, 'item id').startsWith(PREFIX[type as Type]), 'item id')
  const item = {
    id: id as string,
    type: type as string,
    text: '',
    callId: '',
    name: '',
    status: status as string,
  }
  if (type !== 'reasoning') oneOf(status, 'status', ['in_progress', 'completed', 'incomplete'])
  if (type === 'message') {
    const { content, role } = keys(value, 'message', 'id type status role content')
    oneOf(role, 'role', ['assistant'])
    return { ...item, text: textsOf(content, type) }
  }
  if (type === 'reasoning') {
    const { summary } = keys(value, 'reasoning', 'id type summary encrypted_content?')
    return { ...item, text: textsOf(summary, type) }
  }
  const content = type === 'function_call' ? 'arguments' : 'input'
  const call = keys(value, String(type), `id type status call_id name ${content}`)
  ensure(text(call['call_id'], 'call_id').startsWith('call_'), 'call_id')
  const called = call[content]
  ensure(typeof called === 'string', 'a call without a text')
  if (status === 'completed' && type === 'function_call') parseObject(called)
  return {
    ...item,
    text: called,
    callId: call['call_id'] as string,
    name: text(call['name'], 'name'),
  }
}

function textsOf(value: unknown, type: string): string {
  ensure(Array.isArray(value), 'no list of texts')
  return value.map((part: unknown) => checkPart(part, type)).join('')
}

/** Checks a part of an item of this type, and returns its text. */
function checkPart(value: unknown, type: string): string {
  const isMessage = type === 'message'
  const part = keys(value, 'part', isMessage ? 'type text annotations logprobs' : 'type text')
  constant(part, isMessage ? { type: 'output_text', annotations: [] } : { type: 'summary_text' })
  if (isMessage) ensure(Array.isArray(part['logprobs']), 'logprobs')
  ensure(typeof part['text'] === 'string', 'a part without text')
  return part['text']
}

const WORK =
  'id object created_at completed_at status background error incomplete_details model output ' +
  'previous_response_id service_tier store usage'
/** Fields of the request that a response repeats. */
const REPEATED =
  'frequency_penalty instructions max_output_tokens max_tool_calls metadata parallel_tool_calls ' +
  'presence_penalty prompt_cache_key reasoning safety_identifier temperature text tool_choice ' +
  'tools top_logprobs top_p truncation'

/** Checks a whole response, of a stream or of a body. */
export function checkResponse(value: unknown): Fields {
  const response = keys(value, 'response', `${WORK} ${REPEATED}`)
  ensure(text(response['id'], 'id').startsWith('resp_'), 'id does not begin with resp_')
  oneOf(response['object'], 'object', ['response'])
  ensure(count(response['created_at'], 'created_at') > 1e9, 'created_at is not in seconds')
  const isCompleted = response['status'] === 'completed'
  ensure((response['completed_at'] !== null) === isCompleted, 'completed_at')
  if (isCompleted) count(response['completed_at'], 'completed_at')
  oneOf(response['service_tier'], 'service_tier', ['default'])
  text(response['model'], 'model')
  ensure(Array.isArray(response['output']), 'no output')
  const cut = response['status'] === 'incomplete'
  const details = response['incomplete_details']
  ensure((details !== null) === cut, 'incomplete_details')
  if (response['status'] === 'failed') {
    const error = keys(response['error'], 'error', 'message type param code')
    for (const field of ['message', 'type', 'code']) text(error[field], field)
  }
  if (response['status'] === 'in_progress' || response['status'] === 'failed') {
    oneOf(response['usage'], 'usage', [null])
    return response
  }
  checkUsage(response['usage'], 'input', 'output')
  return response
}
