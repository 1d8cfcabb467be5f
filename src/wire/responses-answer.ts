/** Encodes a response, as one JSON body or as a stream of events about its items. */
import type { KeptItem, TokenLogprob, Usage } from '../types/index.ts'
import type { Encoder } from './answer.ts'
import { progressText } from './answer.ts'
import { wireError } from './errors.ts'
import { id, seconds } from './id.ts'
import { jsonEncoder } from './parts.ts'
import type { Finish, Part } from './parts.ts'
import { SSE_TYPE } from './reply.ts'
import { bodyOf, closeOf, deltaOf, itemOf, openingOf } from './responses-items.ts'
import type { Item } from './responses-items.ts'
import type { ResponsesBody } from './responses.ts'
import { comment, frame } from './sse.ts'

/** Options that decide what a response contains. */
export interface ResponseTelling {
  /** Body of the request. The response repeats some of its fields. */
  asked: ResponsesBody
  reasoning: boolean
  logprobs: boolean
  /** `true` if the client asked for `reasoning.encrypted_content`, to send reasoning back. */
  sealed: boolean
  /** Stores the response; resolves with `false` if it cannot. Absent: it is not stored. */
  keep?(body: ResponseBody): Promise<boolean>
}

/** Response as it is sent, complete or partial. */
export interface ResponseBody extends Readonly<Record<string, unknown>> {
  id: string
  status: Status
  output: readonly KeptItem[]
}

type Status = 'in_progress' | 'completed' | 'incomplete'

/** Returns a function that creates the response object with all fields that clients expect. */
function createHead({ asked }: ResponseTelling) {
  const head = { id: id('resp_'), object: 'response', created_at: seconds() }
  const repeated = {
    background: false,
    error: null,
    instructions: asked.instructions ?? null,
    max_output_tokens: asked.max_output_tokens ?? null,
    metadata: asked.metadata ?? {},
    model: asked.model,
    parallel_tool_calls: asked.parallel_tool_calls ?? true,
    previous_response_id: asked.previous_response_id ?? null,
    reasoning: {
      effort: asked.reasoning?.effort ?? null,
      summary: asked.reasoning?.summary ?? null,
    },
    store: asked.store ?? true,
    temperature: asked.temperature ?? null,
    text: { format: asked.text?.format ?? { type: 'text' } },
    tool_choice: asked.tool_choice ?? 'auto',
    tools: (asked.tools ?? []).map((tool) => ({ strict: true, parameters: {}, ...tool })),
    top_p: asked.top_p ?? null,
    truncation: 'disabled',
  }
  return (status: Status, output: readonly KeptItem[], usage: Usage | null): ResponseBody => ({
    ...head,
    status,
    ...repeated,
    // A response that was aborted has no usage, and no reason that clients know.
    incomplete_details: status === 'incomplete' && usage ? { reason: 'max_output_tokens' } : null,
    output,
    usage: usage && usageOf(usage),
  })
}

function usageOf({ promptTokens, cachedTokens, completionTokens, reasoningTokens }: Usage) {
  return {
    input_tokens: promptTokens,
    input_tokens_details: { cached_tokens: cachedTokens },
    output_tokens: completionTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: promptTokens + completionTokens,
  }
}

const statusOf = ({ reason }: Finish) => (reason === 'length' ? 'incomplete' : 'completed')

/** Encodes a response as one JSON body. Spaces are sent ahead of it as heartbeats. */
export function responseJson(telling: ResponseTelling): Encoder {
  const whole = createHead(telling)
  // A response that was aborted is not stored, because no client knows its id.
  return jsonEncoder((parts, finish) => {
    const status = statusOf(finish)
    const told = parts.filter(({ type }) => telling.reasoning || type !== 'reasoning')
    const items = (told.length > 0 ? told : [NOTHING]).map((part) => itemOf(part, telling.sealed))
    const output = items.map((item, index) =>
      bodyOf(item, index === items.length - 1 ? status : 'completed'),
    )
    return settled(whole(status, output, finish.usage), telling)
  })
}

/** Stores a response. Resolves with it, and with `store: false` if it could not be stored. */
async function settled(body: ResponseBody, { keep }: ResponseTelling): Promise<ResponseBody> {
  return keep && !(await keep(body)) ? { ...body, store: false } : body
}

/** Text of an empty completion, which becomes one empty message. */
const NOTHING: Part = { type: 'text', text: '', logprobs: [] }

/** Encodes a response as a stream of events. */
export function responseStream(telling: ResponseTelling): Encoder {
  const whole = createHead(telling)
  const output: KeptItem[] = []
  let begun = false
  let body: ResponseBody | null = null
  let open: Item | null = null
  let number = 0
  const say = (type: string, fields: object): string =>
    frame({ type, sequence_number: number++, ...fields }, type)
  const sayAll = (events: ReadonlyArray<readonly [type: string, fields: object]>): string =>
    events.map(([type, fields]) => say(type, { output_index: output.length, ...fields })).join('')

  const close = (status: 'completed' | 'incomplete'): string => {
    if (!open) return ''
    const said = sayAll(closeOf(open, status))
    output.push(bodyOf(open, status))
    open = null
    return said
  }
  const begin = (part: Part): string => {
    const before = close('completed')
    open = itemOf(part, telling.sealed)
    return before + sayAll(openingOf(open))
  }
  const add = (
    type: Part['type'],
    text: string,
    logprobs: readonly TokenLogprob[] = [],
  ): string => {
    if (text === '' && logprobs.length === 0) return ''
    const opening = open?.part.type === type ? '' : begin(emptyOf(type))
    if (!open) return opening
    const { part } = open
    if (part.type === 'call') part.arguments += text
    else part.text += text
    if (part.type === 'text' && telling.logprobs) part.logprobs.push(...logprobs)
    return opening + sayAll([deltaOf(open, text, telling.logprobs ? logprobs : [])])
  }

  return {
    type: SSE_TYPE,
    encode(event) {
      switch (event.type) {
        case 'progress':
          return comment(progressText(event.progress))
        case 'heartbeat':
          return comment('heartbeat')
        case 'start': {
          begun = true
          const response = whole('in_progress', [], null)
          return say('response.created', { response }) + say('response.in_progress', { response })
        }
        case 'reasoning':
          return telling.reasoning ? add('reasoning', event.text) : ''
        case 'text':
          return add('text', event.text, event.logprobs)
        case 'tool_call':
          return begin({ type: 'call', id: event.id, name: event.name, arguments: '' })
        case 'tool_arguments':
          return add('call', event.text)
        case 'finish': {
          const status = statusOf(event)
          const nothing = output.length === 0 && !open ? begin(NOTHING) : ''
          const last = nothing + close(status)
          body = whole(status, output, event.usage)
          return last
        }
      }
    },
    fail: (error) => {
      // Some clients read the fields of the event, others those of `error`.
      const fields = wireError(error)
      return frame({ ...fields, type: 'error', sequence_number: number++, error: fields }, 'error')
    },
    // A client that aborted the stream may refer to the items that it received.
    settle: async () => {
      if (body) {
        const response = await settled(body, telling)
        return say(`response.${response.status}`, { response })
      }
      const told = open ? [...output, bodyOf(open, 'incomplete')] : output
      if (begun) await telling.keep?.(whole('incomplete', told, null))
      return ''
    },
  }
}

function emptyOf(type: Part['type']): Part {
  switch (type) {
    case 'call':
      return { type, id: '', name: '', arguments: '' }
    case 'reasoning':
      return { type, text: '' }
    case 'text':
      return { type, text: '', logprobs: [] }
  }
}
