/** OpenAI's SDK: chat completions, models, embeddings. */
import OpenAI from 'openai'
import { zodFunction, zodResponseFormat } from 'openai/helpers/zod'
import * as z from 'zod'
import type { Answer, Client, Kind, Options, Settings, Turn, UserTurn } from '../client.ts'
import { ensure, equal } from '../judge.ts'
import { CLOCK, REPORT, TOOLS, WEATHER } from '../tools.ts'
import { judgeModels, judgeVectors } from './common.ts'
import { openaiComplaint, openaiError } from './openai-errors.ts'

type Message = OpenAI.ChatCompletionMessageParam
type Params = Omit<OpenAI.ChatCompletionCreateParamsNonStreaming, 'stream'>

const ENDS = { stop: 'stop', length: 'limit', tool_calls: 'calls' } as const

export const openaiChat: Kind<Message> = {
  title: 'chat',
  packages: ['openai'],
  lacks: ['document', 'countTokens'],
  create: createClient,
}

function createClient({ baseURL, apiKey, model, embedder, fetch }: Settings): Client<Message> {
  const openai = new OpenAI({ baseURL, apiKey, fetch, dangerouslyAllowBrowser: true })
  const completions = openai.chat.completions
  const question = { model, messages: [{ role: 'user' as const, content: 'What is inorigin?' }] }

  return {
    async ask(turns, options = {}) {
      const body = paramsOf(model, turns, options)
      const completion =
        options.json === 'schema'
          ? await completions.parse(body)
          : await completions.create(body, { signal: options.signal })
      equal(completion.object, 'chat.completion', 'the object')
      ensure(completion._request_id?.startsWith('req_') ?? false, 'there is no id of the request')
      const [choice] = completion.choices
      ensure(
        choice !== undefined && completion.usage !== undefined,
        'there is no choice, or no usage',
      )
      if (options.json === 'schema' && 'parsed' in choice.message)
        REPORT.parse(choice.message.parsed)
      return answerOf(choice, completion.usage, options)
    },

    async stream(turns, options, tell) {
      const body = { ...paramsOf(model, turns, options), stream_options: { include_usage: true } }
      const chunks = await completions.create({ ...body, stream: true }, { signal: options.signal })
      const message = {
        role: 'assistant' as const,
        content: '',
        refusal: null,
        reasoning_content: '',
      }
      const calls: OpenAI.ChatCompletionMessageFunctionToolCall[] = []
      let finish: OpenAI.ChatCompletion.Choice['finish_reason'] | null = null
      let usage: OpenAI.CompletionUsage | null | undefined
      for await (const chunk of chunks) {
        usage ??= chunk.usage
        const [choice] = chunk.choices
        if (!choice) continue
        finish ??= choice.finish_reason
        const delta: typeof choice.delta & { reasoning_content?: string } = choice.delta
        message.reasoning_content += delta.reasoning_content ?? ''
        if (delta.content) {
          message.content += delta.content
          tell(delta.content)
        }
        for (const { index, id, function: part } of delta.tool_calls ?? []) {
          const call = (calls[index] ??= {
            id: id ?? '',
            type: 'function',
            function: { name: part?.name ?? '', arguments: '' },
          })
          call.function.arguments += part?.arguments ?? ''
        }
      }
      ensure(finish !== null && usage !== null && usage !== undefined, 'it broke off')
      const whole = { index: 0, logprobs: null, finish_reason: finish }
      return answerOf({ ...whole, message: { ...message, tool_calls: calls } }, usage, options)
    },

    is: openaiError,
    complaint: openaiComplaint,

    own: {
      async helper() {
        const stream = completions.stream({ ...question, max_tokens: 24 })
        let text = ''
        stream.on('content', (delta) => (text += delta))
        const completion = await stream.finalChatCompletion()
        ensure(text !== '', 'there is no text')
        equal(completion.choices[0]?.message.content, text, 'the final text')
      },
      async toolLoop() {
        const called: string[] = []
        const run = (name: string) => (input: unknown) => {
          called.push(name)
          return JSON.stringify({ of: input })
        }
        const tools = [WEATHER, CLOCK].map(({ name, description, input }) =>
          zodFunction({ name, description, parameters: input, function: run(name) }),
        )
        const runner = completions.runTools({ ...question, tools, max_tokens: 160 })
        ensure((await runner.finalContent()) !== null, 'there is no final text')
        ensure(called.length > 0, 'no tool was run')
      },
      async functions() {
        const { name, description, input } = WEATHER
        const body = {
          ...question,
          functions: [{ name, description, parameters: z.toJSONSchema(input) }],
          function_call: { name },
          max_tokens: 160,
        }
        const plain = (await completions.create(body)).choices[0]
        const streamed = (await completions.stream(body).finalChatCompletion()).choices[0]
        for (const choice of [plain, streamed]) {
          const { name: called, arguments: text } = choice?.message.function_call ?? {}
          equal(
            [choice?.finish_reason, called],
            ['function_call', name],
            'the end, and what was called',
          )
          input.parse(JSON.parse(text ?? ''))
        }
        const called = plain?.message.function_call
        const { choices } = await completions.create({
          ...question,
          messages: [
            ...question.messages,
            { role: 'assistant', content: null, function_call: called },
            { role: 'function', name, content: '5 degrees' },
          ],
          max_tokens: 24,
        })
        ensure(Boolean(choices[0]?.message.content), 'there is no text behind the result')
      },
      async logprobs() {
        const { choices } = await completions.create({
          ...question,
          max_tokens: 4,
          logprobs: true,
          top_logprobs: 2,
        })
        const tokens = choices[0]?.logprobs?.content ?? []
        equal(tokens.map(({ token }) => token).join(''), choices[0]?.message.content, 'the tokens')
        ensure(
          tokens.every((token) => token.top_logprobs.length === 2),
          'there are not two beside each',
        )
      },
      models: () => judgeModels(openai.models.list(), model),
      async model() {
        equal((await openai.models.retrieve(model)).id, model, 'the model')
      },
      async embeddings() {
        const input = ['a cat', 'a kitten']
        // The SDK asks for base64 by itself, and makes numbers of it.
        const vectors = await openai.embeddings.create({ model: embedder, input })
        const plain = await openai.embeddings.create({
          model: embedder,
          input,
          encoding_format: 'float',
        })
        judgeVectors(
          vectors.data.map(({ embedding }) => embedding),
          input.length,
        )
        judgeVectors(
          plain.data.map(({ embedding }) => embedding),
          input.length,
        )
        const [a, b] = [vectors, plain].map(({ data }) => data[0]?.embedding[0] ?? NaN)
        ensure(Math.abs(Number(a) - Number(b)) < 1e-6, `base64 says ${a}, float says ${b}`)
        ensure(vectors.usage.prompt_tokens > 0, 'there is no usage')
      },
    },

    refused: {
      serverTool: () => completions.create({ ...question, web_search_options: {} }),
      several: () => completions.create({ ...question, n: 2 }),
    },
  }
}

const contentOf = ({ text, image }: UserTurn): string | OpenAI.ChatCompletionContentPart[] =>
  image === undefined
    ? text
    : [
        { type: 'text', text },
        { type: 'image_url', image_url: { url: `data:image/png;base64,${image}` } },
      ]

function paramsOf(model: string, turns: ReadonlyArray<Turn<Message>>, options: Options): Params {
  const { system, limit, stop, tools, single, json, think, topP } = options
  const messages = turns.flatMap((turn): Message[] => {
    if (turn.role === 'user') return [{ role: 'user', content: contentOf(turn) }]
    if (turn.role === 'assistant') return [turn.own]
    return turn.results.map(({ call, text }) => ({
      role: 'tool',
      tool_call_id: call.id,
      content: text,
    }))
  })
  return {
    model,
    messages: system ? [{ role: 'developer', content: system }, ...messages] : messages,
    max_completion_tokens: limit,
    stop,
    top_p: topP,
    ...(tools && {
      tools: TOOLS.map(({ name, description, input }) =>
        zodFunction({ name, description, parameters: input }),
      ),
      tool_choice: tools === 'weather' ? { type: 'function', function: { name: tools } } : tools,
      parallel_tool_calls: !single,
    }),
    ...(json && {
      response_format:
        json === 'object' ? { type: 'json_object' } : zodResponseFormat(REPORT, 'report'),
    }),
    ...(think && { reasoning_effort: 'minimal' }),
  }
}

function answerOf(
  { message, finish_reason: finish }: Omit<OpenAI.ChatCompletion.Choice, 'index'>,
  usage: OpenAI.CompletionUsage,
  { stop }: Options,
): Answer<Message> {
  ensure(finish in ENDS, `it ended by ${finish}`)
  equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens, 'the sum of tokens')
  const end = ENDS[finish as keyof typeof ENDS]
  const thoughts: typeof message & { reasoning_content?: string } = message
  return {
    text: message.content ?? '',
    thought: thoughts.reasoning_content ?? '',
    calls: (message.tool_calls ?? []).map((call) => {
      ensure(call.type === 'function', 'a call is of no function')
      const { name, arguments: text } = call.function
      return { id: call.id, name, input: JSON.parse(text) as unknown }
    }),
    // This style does not tell which of the two it was.
    end: end === 'stop' && stop !== undefined ? 'stop text' : end,
    usage: {
      input: usage.prompt_tokens,
      output: usage.completion_tokens,
      thought: usage.completion_tokens_details?.reasoning_tokens,
    },
    own: message,
  }
}
