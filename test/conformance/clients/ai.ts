/** The AI SDK, whose providers speak the styles, and whose functions hide which. */
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import {
  APICallError,
  embedMany,
  generateText,
  Output,
  stepCountIs,
  streamText,
  tool,
  type EmbeddingModel,
  type LanguageModel,
  type LanguageModelUsage,
  type ModelMessage,
} from 'ai'
import type { Answer, Client, Failure, Kind, Options, Settings, Turn } from '../client.ts'
import type { Feature } from '../features.ts'
import { ensure, equal } from '../judge.ts'
import { CLOCK, REPORT, WEATHER } from '../tools.ts'
import { judgeVectors } from './common.ts'

type Own = ModelMessage[]
type ProviderOptions = NonNullable<Parameters<typeof generateText>[0]['providerOptions']>

/** A provider of the SDK, and its options. */
interface Provider {
  model: LanguageModel
  embedder?: EmbeddingModel
  single: ProviderOptions
  think: ProviderOptions
  /** Goes on from an answer that the server keeps. */
  after?: (answer: string) => ProviderOptions
  silent?: 'thoughts'
}

/** The SDK itself tells of no such thing. */
const LACKS: readonly Feature[] = [
  'helper',
  'countTokens',
  'models',
  'model',
  'logprobs',
  'serverTool',
  'several',
]

function kindOf(
  title: string,
  packageName: string,
  lacks: readonly Feature[],
  provider: (settings: Settings) => Provider,
  note?: string,
): Kind<Own> {
  return {
    title,
    packages: ['ai', packageName],
    lacks: [...LACKS, ...lacks],
    note,
    create: (settings) => createClient(provider(settings)),
  }
}

export const aiResponses = kindOf(
  'openai(id)',
  '@ai-sdk/openai',
  ['stop'],
  (settings) => {
    const openai = createOpenAI(settings)
    const think = { reasoningEffort: 'minimal', reasoningSummary: 'auto', forceReasoning: true }
    return {
      model: openai(settings.model),
      embedder: openai.embedding(settings.embedder),
      single: { openai: { parallelToolCalls: false } },
      think: { openai: think },
      after: (previousResponseId) => ({ openai: { previousResponseId } }),
    }
  },
  '`openai(id)` uses `/v1/responses` and refers to stored responses, unless you pass `store: false`.',
)

export const aiChat = kindOf(
  'openai.chat(id)',
  '@ai-sdk/openai',
  [],
  (settings) => {
    const openai = createOpenAI(settings)
    return {
      model: openai.chat(settings.model),
      single: { openai: { parallelToolCalls: false } },
      think: { openai: { reasoningEffort: 'minimal', forceReasoning: true } },
      silent: 'thoughts',
    }
  },
  '`openai.chat(id)` reports only the number of reasoning tokens, not their text.',
)

export const aiCompatible = kindOf(
  'openai-compatible',
  '@ai-sdk/openai-compatible',
  [],
  (settings) => {
    const { baseURL, apiKey } = settings
    const provider = createOpenAICompatible({
      name: 'inorigin',
      baseURL,
      apiKey,
      includeUsage: true,
      supportsStructuredOutputs: true,
    })
    return {
      model: provider(settings.model),
      embedder: provider.embeddingModel(settings.embedder),
      single: { inorigin: { parallel_tool_calls: false } },
      think: { inorigin: { reasoningEffort: 'minimal' } },
    }
  },
)

const anthropicKind = kindOf(
  'anthropic',
  '@ai-sdk/anthropic',
  ['jsonObject', 'embeddings'],
  (settings) => {
    const { baseURL, apiKey } = settings
    const headers = { 'anthropic-dangerous-direct-browser-access': 'true' }
    const anthropic = createAnthropic({ baseURL, apiKey, headers })
    return {
      model: anthropic(settings.model),
      single: { anthropic: { disableParallelToolUse: true } },
      think: { anthropic: { thinking: { type: 'enabled', budgetTokens: 16 } } },
    }
  },
)
export const aiAnthropic: Kind<Own> = { ...anthropicKind, thoughts: 16 }

const tools = {
  weather: tool({ description: WEATHER.description, inputSchema: WEATHER.input }),
  clock: tool({ description: CLOCK.description, inputSchema: CLOCK.input }),
}

const ENDS = { stop: 'stop', length: 'limit', 'tool-calls': 'calls' } as const

function createClient(provider: Provider): Client<Own> {
  const { model, embedder, after, silent } = provider
  const paramsOf = (turns: ReadonlyArray<Turn<Own>>, options: Options) => {
    const { system, limit, stop, tools: choice, single, think, topP, signal } = options
    return {
      model,
      system,
      messages: turns.flatMap(messagesOf),
      maxOutputTokens: limit,
      topP,
      abortSignal: signal,
      ...(stop && { stopSequences: [stop] }),
      ...(choice && {
        tools,
        toolChoice: choice === 'weather' ? { type: 'tool' as const, toolName: choice } : choice,
      }),
      ...((single || think) && { providerOptions: single ? provider.single : provider.think }),
    }
  }

  return {
    async ask(turns, options = {}) {
      const params = paramsOf(turns, options)
      if (options.json === 'schema') {
        const result = await generateText({ ...params, output: Output.object({ schema: REPORT }) })
        REPORT.parse(result.output)
        return answerOf(result, result.response.messages, options)
      }
      if (options.json === 'object') {
        const result = await generateText({ ...params, output: Output.json() })
        return answerOf(result, result.response.messages, options)
      }
      const result = await generateText(params)
      return answerOf(result, result.response.messages, options)
    },

    async stream(turns, options, tell) {
      let failure: unknown
      const result = streamText({
        ...paramsOf(turns, options),
        onError: ({ error }) => void (failure = error),
      })
      for await (const piece of result.textStream) tell(piece)
      if (failure !== undefined) throw failure
      const whole = {
        text: await result.text,
        reasoningText: await result.reasoningText,
        toolCalls: await result.toolCalls,
        finishReason: await result.finishReason,
        usage: await result.usage,
      }
      return answerOf(whole, (await result.response).messages, options)
    },

    is: isError,
    complaint(thrown) {
      if (!APICallError.isInstance(thrown)) return { status: undefined, message: String(thrown) }
      return { status: thrown.statusCode, message: thrown.message }
    },

    own: {
      async toolLoop() {
        const called: unknown[] = []
        const execute = (input: unknown) => {
          called.push(input)
          return { of: input }
        }
        const params = {
          model,
          tools: {
            weather: tool({ ...tools.weather, execute }),
            clock: tool({ ...tools.clock, execute }),
          },
          stopWhen: stepCountIs(4),
          maxOutputTokens: 160,
        }
        const asked: ModelMessage = { role: 'user', content: 'What is inorigin?' }
        const first = await generateText({ ...params, messages: [asked] })
        const { text, steps } = first
        ensure(called.length > 0 && text !== '', `${called.length} tools were run`)
        equal(steps.length, 2, 'how many steps there were')
        const more: ModelMessage = { role: 'user', content: 'And what else?' }
        const again = streamText({ ...params, messages: [asked, ...generatedBy(first), more] })
        const said = await again.text
        equal((await again.steps).length, 1, 'how many more steps there were')
        ensure(said !== '', 'there is no second text')
        const streamed = streamText({ ...params, messages: [asked] })
        equal(
          [await streamed.text, (await streamed.steps).length],
          [text, 2],
          'the same as a stream',
        )
      },
      ...(after && {
        async stored() {
          const few = { model, maxOutputTokens: 8 }
          const first = await generateText({ ...few, prompt: 'What is inorigin?' })
          const { text, usage } = await generateText({
            ...few,
            prompt: 'And what else?',
            providerOptions: after(first.response.id),
          })
          const [before = NaN, read = NaN] = [first.usage.inputTokens, usage.inputTokens]
          ensure(text !== '' && read > before, `${before} tokens were read, then ${read}`)
        },
      }),
      ...(embedder && {
        async embeddings() {
          const values = ['a cat', 'a kitten']
          const { embeddings, usage } = await embedMany({ model: embedder, values })
          judgeVectors(embeddings, values.length)
          ensure(usage.tokens > 0, 'there is no usage')
        },
      }),
    },

    refused: {
      document: () =>
        generateText({
          model,
          messages: asking({
            type: 'file',
            mediaType: 'application/pdf',
            data: new Uint8Array([0x25, 0x50, 0x44, 0x46]),
          }),
        }),
    },
    ...(silent && { silent }),
  }
}

type Part = Exclude<Extract<ModelMessage, { role: 'user' }>['content'], string>[number]

const asking = (part: Part): ModelMessage[] => [
  { role: 'user', content: [{ type: 'text', text: 'What is this?' }, part] },
]

function messagesOf(turn: Turn<Own>): ModelMessage[] {
  if (turn.role === 'user') {
    const { text, image } = turn
    if (image === undefined) return [{ role: 'user', content: text }]
    return [
      {
        role: 'user',
        content: [
          { type: 'text', text },
          { type: 'image', image },
        ],
      },
    ]
  }
  if (turn.role === 'assistant') return turn.own
  const content = turn.results.map(({ call, text }) => ({
    type: 'tool-result' as const,
    toolCallId: call.id,
    toolName: call.name,
    output: { type: 'text' as const, value: text },
  }))
  return [{ role: 'tool', content }]
}

interface Result {
  text: string
  reasoningText: string | undefined
  toolCalls: ReadonlyArray<{ toolCallId: string; toolName: string; input: unknown }>
  finishReason: string
  usage: LanguageModelUsage
}

function answerOf(result: Result, own: Own, { stop }: Options): Answer<Own> {
  const { text, reasoningText, toolCalls, finishReason, usage } = result
  ensure(finishReason in ENDS, `it ended by ${finishReason}`)
  const { inputTokens: input = NaN, outputTokens: output = NaN, totalTokens } = usage
  equal(totalTokens, input + output, 'the sum of tokens')
  const end = ENDS[finishReason as keyof typeof ENDS]
  return {
    text,
    thought: reasoningText ?? '',
    calls: toolCalls.map((call) => ({
      id: call.toolCallId,
      name: call.toolName,
      input: call.input,
    })),
    // The SDK has one word for both.
    end: end === 'stop' && stop !== undefined ? 'stop text' : end,
    usage: { input, output, thought: usage.outputTokenDetails.reasoningTokens },
    own,
  }
}

const STATUS = {
  invalid: 400,
  unauthorised: 401,
  unknown: 404,
  tooLarge: 413,
  overflow: 400,
} as const

/** The SDK has one class for all of them, which says whether to try again. */
function isError(failure: Failure, thrown: unknown): boolean {
  if (!APICallError.isInstance(thrown)) return false
  return thrown.statusCode === STATUS[failure] && !thrown.isRetryable
}

/** All messages of an answer with tools. Those of `response` are the last step's in version 7. */
const generatedBy = (answer: {
  response: { messages: ModelMessage[] }
  responseMessages?: ModelMessage[]
}): ModelMessage[] => answer.responseMessages ?? answer.response.messages
