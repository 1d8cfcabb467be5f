import {
  constant,
  count,
  countWithin,
  ensure,
  fail,
  keys,
  oneOf,
  parseFrames,
  parseObject,
  text,
} from './sse-grammar.ts'
import type { Fields } from './sse-grammar.ts'

export interface MessageBlock {
  type: string
  /** Text, thinking, or the JSON of a tool's input. */
  text: string
  /** Signature of a thinking block. */
  signature: string
  /** Id of a tool call. */
  id: string
  name: string
}

export interface MessageTranscript {
  id: string
  model: string
  blocks: MessageBlock[]
  /** The text blocks together. */
  text: string
  stopReason: string | null
  stopSequence: string | null
  startUsage: Fields
  usage: Fields | null
  /** Error that ended the stream instead of `message_stop`. */
  error: Fields | null
}

const STOP_REASONS = [
  'end_turn',
  'max_tokens',
  'stop_sequence',
  'tool_use',
  'refusal',
  'model_context_window_exceeded',
  'pause_turn',
]
const INPUT_COUNTS = 'input_tokens cache_creation_input_tokens cache_read_input_tokens'

/**
 * Reads a whole raw stream of message events and throws on the first thing out of place: start,
 * blocks one after the other, one delta, stop, end; pings anywhere before the stop. One that was `cut`
 * need not end.
 */
export function checkMessageStream(raw: string, { cut: torn = false } = {}): MessageTranscript {
  const seen: MessageTranscript = {
    id: '',
    model: '',
    blocks: [],
    text: '',
    stopReason: null,
    stopSequence: null,
    startUsage: {},
    usage: null,
    error: null,
  }
  let stage = 'start' as 'start' | 'blocks' | 'stop' | 'closed'
  let open: MessageBlock | null = null
  /** A call whose input is no JSON, as only a limit may leave it. */
  let cut: MessageBlock | null = null

  const steps: Record<string, (data: Fields) => void> = {
    ping: (data) => void keys(data, 'ping', 'type'),

    message_start(data) {
      ensure(stage === 'start', 'a second message_start')
      const message = keys(
        keys(data, 'message_start', 'type message')['message'],
        'message',
        'id type role model content stop_reason stop_sequence usage',
      )
      seen.id = text(message['id'], 'id')
      ensure(seen.id.startsWith('msg_'), 'id does not begin with msg_')
      seen.model = text(message['model'], 'model')
      const nothing = { content: [], stop_reason: null, stop_sequence: null }
      constant(message, { type: 'message', role: 'assistant', ...nothing })
      seen.startUsage = keys(message['usage'], 'usage', `output_tokens ${INPUT_COUNTS}`)
      for (const [key, value] of Object.entries(seen.startUsage)) count(value, key)
      constant(seen.startUsage, { output_tokens: 0 })
      stage = 'blocks'
    },

    content_block_start(data) {
      ensure(stage === 'blocks' && open === null, 'a block begins where none can')
      ensure(cut === null, 'a block behind input that is no JSON')
      keys(data, 'content_block_start', 'type index content_block')
      ensure(data['index'] === seen.blocks.length, 'block index')
      open = blockOf(data['content_block'])
      seen.blocks.push(open)
    },

    content_block_delta(data) {
      const block = open ?? fail('a delta outside of a block')
      keys(data, 'content_block_delta', 'type index delta')
      ensure(data['index'] === seen.blocks.length - 1, 'delta index')
      apply(block, data['delta'])
    },

    content_block_stop(data) {
      const block = open ?? fail('a stop outside of a block')
      keys(data, 'content_block_stop', 'type index')
      ensure(data['index'] === seen.blocks.length - 1, 'stop index')
      ensure(block.type !== 'thinking' || block.signature !== '', 'thinking without a signature')
      if (block.type === 'tool_use' && block.text !== '' && !isJson(block.text)) cut = block
      open = null
    },

    message_delta(data) {
      ensure(stage === 'blocks' && open === null, 'message_delta where none can be')
      ensure(seen.blocks.length > 0, 'no block at all')
      keys(data, 'message_delta', 'type delta usage')
      const delta = keys(data['delta'], 'delta', 'stop_reason stop_sequence')
      oneOf(delta['stop_reason'], 'stop_reason', STOP_REASONS)
      seen.stopReason = delta['stop_reason'] as string
      ensure(cut === null || seen.stopReason === 'max_tokens', 'input that is no JSON')
      const called = seen.blocks.some(({ type }) => type === 'tool_use')
      ensure(seen.stopReason !== 'tool_use' || called, 'tool_use without a tool call')
      ensure(
        !called || ['tool_use', 'max_tokens'].includes(seen.stopReason),
        `a tool call and ${seen.stopReason}`,
      )
      if (seen.stopReason === 'stop_sequence')
        seen.stopSequence = text(delta['stop_sequence'], 'stop_sequence')
      else oneOf(delta['stop_sequence'], 'stop_sequence', [null])
      const optional = `${INPUT_COUNTS} output_tokens_details`.replaceAll(/\w+/g, '$&?')
      seen.usage = keys(data['usage'], 'usage', `output_tokens ${optional}`)
      const { output_tokens_details: details, ...counts } = seen.usage
      for (const [key, value] of Object.entries(counts)) count(value, key)
      if (details !== undefined)
        countWithin(details, 'thinking_tokens', Number(counts['output_tokens']))
      // A server that is asked in place of the device tells its counts at the end.
      const begun = promptOf(seen.startUsage)
      if ('input_tokens' in seen.usage && begun > 0)
        ensure(promptOf(seen.usage) === begun, 'the prompt changed its size')
      stage = 'stop'
    },

    message_stop(data) {
      ensure(stage === 'stop', 'message_stop before message_delta')
      keys(data, 'message_stop', 'type')
      stage = 'closed'
    },

    error(data) {
      ensure(stage !== 'stop', 'an error after message_delta')
      seen.error = keys(keys(data, 'error', 'type error')['error'], 'error', 'type message')
      text(seen.error['type'], 'error type')
      text(seen.error['message'], 'error message')
      stage = 'closed'
    },
  }

  for (const frame of parseFrames(raw, torn)) {
    ensure(stage !== 'closed', 'something after the end')
    const data = parseObject(frame.data)
    ensure(frame.event !== null && frame.event === data['type'], 'the event name is not the type')
    const step = Object.hasOwn(steps, frame.event) ? steps[frame.event] : undefined
    ensure(step !== undefined, `an event named ${frame.event}`)
    ensure(
      stage !== 'start' || ['ping', 'message_start', 'error'].includes(frame.event),
      `${frame.event} before the start`,
    )
    step(data)
  }
  ensure(torn || stage === 'closed', 'the stream ended without message_stop')
  seen.text = seen.blocks
    .filter(({ type }) => type === 'text')
    .map((block) => block.text)
    .join('')
  return seen
}

function isJson(json: string): boolean {
  try {
    return parseObject(json) !== null
  } catch {
    return false
  }
}

function blockOf(value: unknown): MessageBlock {
  const block = { text: '', signature: '', id: '', name: '' }
  const { type } = keys(value, 'content_block', 'type text? thinking? signature? id? name? input?')
  switch (type) {
    case 'text': {
      const fields = keys(value, 'text block', 'type text')
      oneOf(fields['text'], 'text at the start', [''])
      return { ...block, type }
    }
    case 'thinking': {
      const fields = keys(value, 'thinking block', 'type thinking signature')
      oneOf(fields['thinking'], 'thinking at the start', [''])
      oneOf(fields['signature'], 'signature at the start', [''])
      return { ...block, type }
    }
    case 'tool_use': {
      const fields = keys(value, 'tool_use block', 'type id name input')
      const id = text(fields['id'], 'tool_use id')
      ensure(id.startsWith('toolu_'), 'tool_use id does not begin with toolu_')
      keys(fields['input'], 'input at the start', '')
      return { ...block, type, id, name: text(fields['name'], 'tool_use name') }
    }
    default:
      return fail(`a block of type ${String(type)}`)
  }
}

function apply(block: MessageBlock, value: unknown): void {
  const { type } = keys(value, 'delta', 'type text? thinking? signature? partial_json?')
  const field = (name: string): string => text(keys(value, 'delta', `type ${name}`)[name], name)
  ensure(block.signature === '', 'a delta after the signature')
  if (block.type === 'text' && type === 'text_delta') block.text += field('text')
  else if (block.type === 'thinking' && type === 'thinking_delta') block.text += field('thinking')
  else if (block.type === 'thinking' && type === 'signature_delta')
    block.signature = field('signature')
  else if (block.type === 'tool_use' && type === 'input_json_delta')
    block.text += field('partial_json')
  else fail(`${String(type)} in a block of type ${block.type}`)
}

function promptOf(usage: Fields): number {
  return INPUT_COUNTS.split(' ').reduce((sum, key) => sum + Number(usage[key] ?? 0), 0)
}
