/** Anthropic's SDK: messages, tokens counted, models. One file for both of its lines. */
import Anthropic, { ContentTooLargeError } from '@anthropic-ai/sdk'
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod'
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod'
import Anthropic0, { APIError as APIError0 } from 'anthropic-sdk-0'
import { betaZodTool as betaZodTool0 } from 'anthropic-sdk-0/helpers/beta/zod'
import { zodOutputFormat as zodOutputFormat0 } from 'anthropic-sdk-0/helpers/zod'
import * as z from 'zod'
import type { Answer, Client, Failure, Kind, Options, Settings, Turn, UserTurn } from '../client.ts'
import type { Feature } from '../features.ts'
import { ensure, equal } from '../judge.ts'
import { CLOCK, REPORT, TOOLS, WEATHER } from '../tools.ts'
import { judgeModels } from './common.ts'

type Content = Anthropic.ContentBlock[]
type Params = Omit<Anthropic.MessageCreateParamsNonStreaming, 'stream'>

/** What differs between the lines; the rest is called the same. */
interface Line {
  Sdk: typeof Anthropic
  betaZodTool: typeof betaZodTool
  zodOutputFormat: typeof zodOutputFormat
  /** The older has no class for some. */
  tooLarge: (thrown: unknown) => boolean
}

const LACKS: readonly Feature[] = ['jsonObject', 'logprobs', 'embeddings', 'several']

/** The budget asked for. */
const THOUGHTS = 16

export const anthropic1: Kind<Content> = {
  title: '1.x',
  packages: ['@anthropic-ai/sdk'],
  lacks: LACKS,
  thoughts: THOUGHTS,
  create: (settings) =>
    createClient(settings, {
      Sdk: Anthropic,
      betaZodTool,
      zodOutputFormat,
      tooLarge: (thrown) => thrown instanceof ContentTooLargeError,
    }),
}

export const anthropic0: Kind<Content> = {
  title: '0.x',
  packages: ['anthropic-sdk-0'],
  lacks: LACKS,
  thoughts: THOUGHTS,
  create: (settings) =>
    createClient(settings, {
      Sdk: Anthropic0 as unknown as typeof Anthropic,
      betaZodTool: betaZodTool0 as unknown as typeof betaZodTool,
      zodOutputFormat: zodOutputFormat0 as unknown as typeof zodOutputFormat,
      tooLarge: (thrown) => thrown instanceof APIError0 && thrown.status === 413,
    }),
}

const ENDS = {
  end_turn: 'stop',
  max_tokens: 'limit',
  stop_sequence: 'stop text',
  tool_use: 'calls',
} as const

function createClient({ origin, apiKey, model, fetch }: Settings, line: Line): Client<Content> {
  const { Sdk } = line
  const anthropic = new Sdk({ baseURL: origin, apiKey, fetch, dangerouslyAllowBrowser: true })
  const messages = [{ role: 'user' as const, content: 'What is inorigin?' }]
  const question = { model, max_tokens: 24, messages }

  return {
    async ask(turns, options = {}) {
      const body = paramsOf(model, turns, options)
      if (options.json !== 'schema') {
        return answerOf(await anthropic.messages.create(body, { signal: options.signal }), options)
      }
      const format = line.zodOutputFormat(REPORT)
      const parsed = await anthropic.messages.parse({ ...body, output_config: { format } })
      REPORT.parse(parsed.parsed_output)
      return answerOf(parsed, options)
    },

    async stream(turns, options, tell) {
      const body = { ...paramsOf(model, turns, options), stream: true as const }
      const events = await anthropic.messages.create(body, { signal: options.signal })
      let message: Anthropic.Message | undefined
      const inputs = new Map<number, string>()
      for await (const event of events) {
        if (event.type === 'message_start') message = structuredClone(event.message)
        ensure(message !== undefined, `${event.type} came first`)
        if (event.type === 'content_block_start') message.content[event.index] = event.content_block
        if (event.type === 'message_delta') {
          Object.assign(message, event.delta)
          Object.assign(message.usage, event.usage)
        }
        if (event.type === 'content_block_delta') {
          const block = message.content[event.index]
          const { delta } = event
          if (delta.type === 'text_delta' && block?.type === 'text') {
            block.text += delta.text
            tell(delta.text)
          } else if (delta.type === 'thinking_delta' && block?.type === 'thinking') {
            block.thinking += delta.thinking
          } else if (delta.type === 'signature_delta' && block?.type === 'thinking') {
            block.signature = delta.signature
          } else if (delta.type === 'input_json_delta' && block?.type === 'tool_use') {
            const json = (inputs.get(event.index) ?? '') + delta.partial_json
            inputs.set(event.index, json)
          }
        }
      }
      ensure(message !== undefined, 'there is no message')
      for (const [index, json] of inputs) {
        const block = message.content[index]
        if (block?.type === 'tool_use') block.input = JSON.parse(json)
      }
      return answerOf(message, options)
    },

    is: (failure, thrown) => isError(failure, thrown, line),
    complaint(thrown) {
      if (!(thrown instanceof Sdk.APIError)) return { status: undefined, message: String(thrown) }
      const { error } = thrown.error as { error: { message: string } }
      return { status: thrown.status, message: error.message }
    },

    own: {
      async helper() {
        const stream = anthropic.messages.stream(question)
        let text = ''
        stream.on('text', (delta) => (text += delta))
        ensure((await stream.finalText()) === text && text !== '', 'the final text is another')
      },
      async toolLoop() {
        const called: unknown[] = []
        const tools = [WEATHER, CLOCK].map(({ name, description, input }) =>
          line.betaZodTool({
            name,
            description,
            inputSchema: z.object(input.shape),
            run: (given) => {
              called.push(given)
              return JSON.stringify({ of: given })
            },
          }),
        )
        const last = await anthropic.beta.messages.toolRunner({
          ...question,
          max_tokens: 160,
          tools,
        })
        ensure(called.length > 0, 'no tool was run')
        equal(
          last.content.map(({ type }) => type),
          ['text'],
          'the last message',
        )
      },
      async countTokens() {
        const tools = TOOLS.map(toolOf)
        const counted = await anthropic.messages.countTokens({ model, messages, tools })
        const { usage } = await anthropic.messages.create({ ...question, max_tokens: 1, tools })
        equal(counted.input_tokens, inputOf(usage), 'the count')
      },
      models: () => judgeModels(anthropic.models.list({ limit: 2 }), model),
      async model() {
        equal((await anthropic.models.retrieve(model)).id, model, 'the model')
      },
    },

    refused: {
      document: () =>
        anthropic.messages.create(
          asking(model, {
            type: 'document',
            source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' },
          }),
        ),
      serverTool: () =>
        anthropic.messages.create({
          ...question,
          tools: [{ type: 'web_search_20250305', name: 'web_search' }],
        }),
      // The tool loop of the newer line tries this first, and goes on without it.
      stored: () => {
        const body: typeof question & { thread: object } = {
          ...question,
          thread: { type: 'create' },
        }
        return anthropic.messages.create(body)
      },
    },
  }
}

const asking = (model: string, block: Anthropic.ContentBlockParam): Params => ({
  model,
  max_tokens: 24,
  messages: [{ role: 'user', content: [block] }],
})

const contentOf = ({ text, image }: UserTurn): string | Anthropic.ContentBlockParam[] =>
  image === undefined
    ? text
    : [
        { type: 'text', text },
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: image } },
      ]

const toolOf = ({ name, description, input }: (typeof TOOLS)[number]): Anthropic.Tool => ({
  name,
  description,
  input_schema: z.toJSONSchema(input) as Anthropic.Tool.InputSchema,
})

function paramsOf(model: string, turns: ReadonlyArray<Turn<Content>>, options: Options): Params {
  const { system, limit = 24, stop, tools, single, think, topP } = options
  return {
    model,
    max_tokens: limit,
    messages: turns.map((turn): Anthropic.MessageParam => {
      if (turn.role === 'user') return { role: 'user', content: contentOf(turn) }
      if (turn.role === 'assistant') return { role: 'assistant', content: turn.own }
      return {
        role: 'user',
        content: turn.results.map(({ call, text }) => ({
          type: 'tool_result',
          tool_use_id: call.id,
          content: text,
        })),
      }
    }),
    ...(system && { system }),
    ...(stop && { stop_sequences: [stop] }),
    // No field of the newer line any more, but one of the service.
    ...(topP !== undefined && { top_p: topP }),
    ...(tools && { tools: TOOLS.map(toolOf), tool_choice: choiceOf(tools, single) }),
    ...(think && { thinking: { type: 'enabled', budget_tokens: THOUGHTS } }),
  }
}

function choiceOf(tools: NonNullable<Options['tools']>, single = false): Anthropic.ToolChoice {
  if (tools === 'none') return { type: 'none' }
  const few = { disable_parallel_tool_use: single }
  if (tools === 'weather') return { type: 'tool', name: tools, ...few }
  return { type: tools === 'auto' ? 'auto' : 'any', ...few }
}

const inputOf = (usage: Anthropic.Usage): number =>
  usage.input_tokens +
  (usage.cache_read_input_tokens ?? 0) +
  (usage.cache_creation_input_tokens ?? 0)

function answerOf(message: Anthropic.Message, { stop }: Options): Answer<Content> {
  const { content, stop_reason: reason, stop_sequence: sequence, usage } = message
  ensure(reason !== null && reason in ENDS, `it ended by ${reason}`)
  equal(sequence, reason === 'stop_sequence' ? stop : null, 'the stop sequence')
  return {
    text: content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
    thought: content.map((block) => (block.type === 'thinking' ? block.thinking : '')).join(''),
    calls: content.flatMap((block) => (block.type === 'tool_use' ? [block] : [])),
    end: ENDS[reason as keyof typeof ENDS],
    usage: {
      input: inputOf(usage),
      output: usage.output_tokens,
      thought: usage.output_tokens_details?.thinking_tokens,
    },
    own: content,
  }
}

function isError(failure: Failure, thrown: unknown, { Sdk, tooLarge }: Line): boolean {
  switch (failure) {
    case 'invalid':
    case 'overflow':
      return thrown instanceof Sdk.BadRequestError && thrown.type === 'invalid_request_error'
    case 'unauthorised':
      return thrown instanceof Sdk.AuthenticationError && thrown.type === 'authentication_error'
    case 'unknown':
      return thrown instanceof Sdk.NotFoundError && thrown.type === 'not_found_error'
    case 'tooLarge':
      return tooLarge(thrown)
  }
}
