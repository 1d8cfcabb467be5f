import {
  checkUsage,
  constant,
  count,
  ensure,
  fail,
  keys,
  object,
  oneOf,
  only,
  parseFrames,
  parseObject,
  text,
} from './sse-grammar.ts'
import type { Fields } from './sse-grammar.ts'

export interface ChatToolCall {
  id: string
  name: string
  /** Arguments, or the text that a custom tool is called with. */
  arguments: string
  /** Absent for functions. */
  isCustom?: true
}

export interface ChatTranscript {
  id: string
  model: string
  reasoning: string
  content: string
  toolCalls: ChatToolCall[]
  /** In the form that was there before tools. */
  functionCall: Omit<ChatToolCall, 'id'> | null
  /** Log probabilities of all tokens of the content, if the request asked for them. */
  logprobs: Fields[]
  finishReason: string | null
  usage: Fields | null
  /** Error that ended the stream instead of `[DONE]`. */
  error: Fields | null
}

/** Stages of a stream; a stream never goes back. */
const STAGES = ['role', 'reasoning', 'content', 'tools', 'usage', 'done', 'closed'] as const
type Stage = (typeof STAGES)[number]

const HEAD = 'id object created model choices'

/**
 * Reads a whole raw stream of chat completion chunks and throws on the first thing out of place:
 * role, reasoning, content, tool calls, finish, usage when it was asked for, `[DONE]`, end. With
 * `logprobs`, each delta of content has them, and nothing else has. One that was `cut` need not end.
 */
export function checkChatStream(
  raw: string,
  { includeUsage = false, logprobs = false, cut = false } = {},
): ChatTranscript {
  const seen: ChatTranscript = {
    id: '',
    model: '',
    reasoning: '',
    content: '',
    toolCalls: [],
    functionCall: null,
    logprobs: [],
    finishReason: null,
    usage: null,
    error: null,
  }
  let created: unknown
  let stage = 'role' as Stage

  const advance = (to: Stage): void => {
    ensure(STAGES.indexOf(to) >= STAGES.indexOf(stage), `${to} after ${stage}`)
    stage = to
  }

  const head = (chunk: Fields): void => {
    text(chunk['id'], 'id')
    text(chunk['model'], 'model')
    ensure(String(chunk['id']).startsWith('chatcmpl-'), 'id does not begin with chatcmpl-')
    oneOf(chunk['object'], 'object', ['chat.completion.chunk'])
    ensure(count(chunk['created'], 'created') > 1e9, 'created is not in seconds since 1970')
    if (seen.id === '') {
      seen.id = chunk['id'] as string
      seen.model = chunk['model'] as string
      created = chunk['created']
    }
    const same =
      chunk['id'] === seen.id && chunk['model'] === seen.model && chunk['created'] === created
    ensure(same, 'id, model or created changed')
  }

  const toolDelta = (value: unknown): void => {
    const { index } = object(value, 'tool call')
    const position = count(index, 'tool call index')
    if (position === seen.toolCalls.length) {
      if ('custom' in object(value, 'tool call')) return customDelta(value)
      const call = keys(value, 'first tool call delta', 'index id type function')
      oneOf(call['type'], 'tool call type', ['function'])
      const named = keys(call['function'], 'function', 'name arguments')
      ensure(named['arguments'] === '', 'arguments begin in the first delta')
      seen.toolCalls.push({
        id: text(call['id'], 'tool call id'),
        name: text(named['name'], 'name'),
        arguments: '',
      })
      return
    }
    const call = seen.toolCalls[position] ?? fail('a tool call index was skipped')
    if (call.isCustom) {
      const more = keys(value, 'tool call delta', 'index custom')
      call.arguments += text(only(more['custom'], 'input'), 'input')
      return
    }
    const more = keys(value, 'tool call delta', 'index function')
    call.arguments += text(only(more['function'], 'arguments'), 'arguments')
  }

  const customDelta = (value: unknown): void => {
    const call = keys(value, 'first tool call delta', 'index id type custom')
    oneOf(call['type'], 'tool call type', ['custom'])
    const named = keys(call['custom'], 'custom', 'name input')
    ensure(named['input'] === '', 'input begins in the first delta')
    seen.toolCalls.push({
      id: text(call['id'], 'tool call id'),
      name: text(named['name'], 'name'),
      arguments: '',
      isCustom: true,
    })
  }

  const functionDelta = (value: unknown): void => {
    ensure(seen.toolCalls.length === 0, 'a function is called beside tools')
    if (!seen.functionCall) {
      const call = keys(value, 'first function call delta', 'name arguments')
      ensure(call['arguments'] === '', 'arguments begin in the first delta')
      seen.functionCall = { name: text(call['name'], 'name'), arguments: '' }
      return
    }
    seen.functionCall.arguments += text(only(value, 'arguments'), 'arguments')
  }

  const delta = (fields: Fields, tokens: number): void => {
    if (stage === 'role') {
      constant(keys(fields, 'role delta', 'role content'), { role: 'assistant', content: '' })
      stage = 'reasoning'
    } else if ('reasoning_content' in fields) {
      advance('reasoning')
      seen.reasoning += text(only(fields, 'reasoning_content'), 'reasoning')
    } else if ('content' in fields) {
      advance('content')
      const content = only(fields, 'content')
      // Tokens of a character that is not whole have no text.
      if (content !== '' || tokens === 0) seen.content += text(content, 'content')
    } else if ('function_call' in fields) {
      advance('tools')
      functionDelta(only(fields, 'function_call'))
    } else {
      advance('tools')
      const calls = only(fields, 'tool_calls')
      ensure(Array.isArray(calls) && calls.length > 0, 'no tool calls in a tool delta')
      calls.forEach(toolDelta)
    }
  }

  const finish = (choice: Fields): void => {
    ensure(stage !== 'role', 'finish before role')
    keys(choice['delta'], 'finish delta', '')
    const { toolCalls, functionCall } = seen
    const called = toolCalls.length > 0 ? 'tool_calls' : functionCall && 'function_call'
    const reasons = called ? [called, 'length'] : ['stop', 'length', 'content_filter']
    oneOf(choice['finish_reason'], 'finish_reason', reasons)
    seen.finishReason = choice['finish_reason'] as string
    const functions = functionCall ? [functionCall] : toolCalls.filter(({ isCustom }) => !isCustom)
    for (const call of functions) {
      if (seen.finishReason === called) parseObject(call.arguments)
    }
    advance(includeUsage ? 'usage' : 'done')
  }

  for (const { event, data } of parseFrames(raw, cut)) {
    ensure(event === null, 'a chat stream has no event names')
    ensure(stage !== 'closed', 'something after the end')
    if (data === '[DONE]') {
      ensure(stage === 'done', `[DONE] while ${stage} was due`)
      stage = 'closed'
      continue
    }
    const chunk = parseObject(data)
    if ('error' in chunk) {
      const error = keys(only(chunk, 'error'), 'error', 'message type code param')
      text(error['message'], 'error message')
      text(error['type'], 'error type')
      ensure(stage !== 'done', 'an error after the finish')
      seen.error = error
      stage = 'closed'
      continue
    }
    ensure(stage !== 'done', 'a chunk where [DONE] was due')
    if (stage === 'usage') {
      head(keys(chunk, 'usage chunk', `${HEAD} usage`))
      ensure(JSON.stringify(chunk['choices']) === '[]', 'choices of the usage chunk')
      seen.usage = checkChatUsage(chunk['usage'])
      stage = 'done'
      continue
    }
    head(keys(chunk, 'chunk', includeUsage ? `${HEAD} usage` : HEAD))
    ensure((chunk['usage'] ?? null) === null, 'usage before its chunk')
    const choices = chunk['choices']
    ensure(Array.isArray(choices) && choices.length === 1, 'not one choice')
    const choice = keys(choices[0], 'choice', 'index delta finish_reason logprobs?')
    ensure(choice['index'] === 0, 'choice index')
    const before = seen.logprobs.length
    if (logprobs && 'content' in object(choice['delta'], 'delta') && stage !== 'role')
      seen.logprobs.push(...checkLogprobs(choice['logprobs']))
    else ensure((choice['logprobs'] ?? null) === null, 'logprobs')
    const tokens = seen.logprobs.length - before
    if (choice['finish_reason'] === null) delta(object(choice['delta'], 'delta'), tokens)
    else finish(choice)
  }
  ensure(cut || stage === 'closed', `the stream ended while ${stage} was due`)
  return seen
}

/** Checks the `logprobs` of a choice, and gives those of its tokens. */
function checkLogprobs(value: unknown): Fields[] {
  const { content, refusal } = keys(value, 'logprobs', 'content refusal')
  oneOf(refusal, 'refusal', [null])
  ensure(Array.isArray(content), 'logprobs without content')
  return content.map((token: unknown) => {
    const fields = probability(token, 'top_logprobs')
    const top = fields['top_logprobs']
    ensure(Array.isArray(top) && top.length <= 20, 'top_logprobs')
    for (const other of top) probability(other)
    return fields
  })
}

function probability(value: unknown, more = ''): Fields {
  const fields = keys(value, 'token', `token logprob bytes ${more}`)
  const { token, logprob, bytes } = fields
  ensure(typeof token === 'string', 'a token without its text')
  ensure(typeof logprob === 'number' && logprob <= 0, 'a logprob')
  // A special token adds no bytes to the text.
  ensure(bytes === null || (Array.isArray(bytes) && bytes.length > 0), 'no bytes')
  for (const byte of bytes ?? []) ensure(count(byte, 'byte') < 256, 'a byte over 255')
  return fields
}

/** Checks a usage object, of a stream or of a body. */
export const checkChatUsage = (value: unknown): Fields => checkUsage(value, 'prompt', 'completion')
