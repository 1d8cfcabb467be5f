import type { Constraint } from '../../../src/constraint/index.ts'
import type {
  Conversation,
  GenerationResult,
  Engine,
  GenerateOptions,
  TextChunk,
  GenerationUpdate,
} from '../../../src/engine/engine.ts'
import type { Coalescer } from '../../../src/generation/coalesce.ts'
import { runGeneration } from '../../../src/generation/generate.ts'
import { type ModelTraits, planGeneration } from '../../../src/generation/plan.ts'
import type {
  GenerationEvent,
  GenerationRequest,
  TokenLogprob,
  Tool,
  ToolUse,
} from '../../../src/types/index.ts'

/** An engine that generates the given pieces, one token each. */
export interface Scripted extends Engine {
  asked: GenerateOptions[]
  conversations: Conversation[]
  /** Updates that it received between pieces. */
  steered: GenerationUpdate[]
  checked: Constraint[]
  /** Number of pieces that were requested. */
  given: number
  closed: boolean
}

export interface Script {
  template?: string | null
  opening?: string
  contextWindow?: number
  cachedTokens?: number
  ending?: GenerationResult['reason'] | Error
  /** Returns the error with which a constraint is refused. */
  refuse?: (constraint: Constraint) => Error | undefined
  /** Keywords that a constraint does not keep. */
  loosened?: readonly string[]
  /** Pieces after an appended text, in place of the rest. */
  after?: readonly string[]
}

export function scripted(pieces: readonly (string | TextChunk)[], script: Script = {}): Scripted {
  const engine: Scripted = {
    contextWindow: script.contextWindow ?? 1_000,
    template: script.template === undefined ? '' : script.template,
    asked: [],
    conversations: [],
    steered: [],
    checked: [],
    given: 0,
    closed: false,
    load: () => Promise.resolve(),
    close: () => Promise.resolve(),
    prepare: (conversation) => {
      engine.conversations.push(conversation)
      return { tokens: [1, 2, 3], boundaries: [3], opening: script.opening ?? '' }
    },
    check: (constraint) => {
      engine.checked.push(constraint)
      const error = script.refuse?.(constraint)
      return error ? Promise.reject(error) : Promise.resolve(script.loosened ?? [])
    },
    async *generate(_prompt, options) {
      engine.asked.push(options)
      options.onStart?.({ cachedTokens: script.cachedTokens ?? 0 })
      let tokens = 0
      let rest = [...pieces]
      try {
        while (rest.length > 0) {
          const [next = '', ...others] = rest
          rest = others
          engine.given += 1
          const piece = typeof next === 'string' ? { text: next, tokens: 1 } : next
          tokens += piece.tokens
          const steer = yield piece
          if (!steer) continue
          engine.steered.push(steer)
          if (steer.append !== undefined) rest = [steer.append, ...(script.after ?? [])]
        }
        if (script.ending instanceof Error) throw script.ending
        return { reason: script.ending ?? 'stop', completionTokens: tokens + 1 }
      } finally {
        engine.closed = true
      }
    },
  }
  return engine
}

export const request = (fields: Partial<GenerationRequest> = {}): GenerationRequest => ({
  model: '@test/scripted',
  messages: [{ role: 'user', content: 'Hi' }],
  sampling: {},
  stop: [],
  ...fields,
})

interface Options {
  ways?: ModelTraits
  partition?: string
  coalescer?: Coalescer
}

/** Plans a request and runs it. */
export async function ask(
  engine: Engine,
  fields: Partial<GenerationRequest> = {},
  { ways, ...options }: Options = {},
): Promise<AsyncGenerator<GenerationEvent>> {
  const planned = request(fields)
  const plan = await planGeneration(engine, planned, ways)
  const wanted = { plan, maxOutputTokens: 50, ...options }
  return runGeneration(engine, planned, wanted, new AbortController().signal)
}

export async function collect(...given: Parameters<typeof ask>): Promise<GenerationEvent[]> {
  const events: GenerationEvent[] = []
  for await (const event of await ask(...given)) events.push(event)
  return events
}

interface Answer {
  reasoning: string
  text: string
  calls: { name: string; arguments: string }[]
  reason: string
  logprobs: TokenLogprob[]
}

/** Returns the content of all events, and fails where their order makes no sense. */
export function sum(events: readonly GenerationEvent[]): Answer {
  const answer: Answer = { reasoning: '', text: '', calls: [], reason: '', logprobs: [] }
  for (const event of events) {
    if (answer.reason !== '') throw new Error('An event behind the last.')
    if (event.type === 'reasoning' || event.type === 'text') answer[event.type] += event.text
    if (event.type === 'text') answer.logprobs.push(...(event.logprobs ?? []))
    if (event.type === 'tool_call') {
      if (event.index !== answer.calls.length) throw new Error('A call out of order.')
      answer.calls.push({ name: event.name, arguments: '' })
    }
    if (event.type === 'tool_arguments') {
      const call = answer.calls.at(-1)
      if (!call || event.index !== answer.calls.length - 1) throw new Error('Arguments of no call.')
      call.arguments += event.text
    }
    if (event.type === 'finish') answer.reason = event.reason
  }
  return answer
}

const object = (properties: object, rest = {}) =>
  ({ type: 'object', properties, ...rest }) as Tool['parameters']
const city = { city: { type: 'string' }, days: { type: 'integer' } }

export const WEATHER: Tool = {
  name: 'get_weather',
  description: 'Current weather.',
  parameters: object(city, { required: ['city'] }),
}
export const TIME: Tool = { name: 'get_time', parameters: object({}) }
export const SET: Tool = {
  name: 'set',
  parameters: object({
    on: { type: 'boolean' },
    level: { type: 'number' },
    names: { type: 'array', items: { type: 'string' } },
    extra: { type: 'object' },
  }),
}

export const use = (fields: Partial<ToolUse> = {}): ToolUse => ({
  tools: [WEATHER, TIME, SET],
  choice: 'auto',
  parallel: true,
  ...fields,
})
