/** LangChain's models of both styles, and of responses. */
import { ChatAnthropic } from '@langchain/anthropic'
import type { BaseChatModel } from '@langchain/core/language_models/chat_models'
import { ContextOverflowError } from '@langchain/core/errors'
import {
  HumanMessage,
  SystemMessage,
  ToolMessage,
  type AIMessage,
  type AIMessageChunk,
  type BaseMessage,
} from '@langchain/core/messages'
import { tool } from '@langchain/core/tools'
import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai'
import type {
  Answer,
  Client,
  End,
  Failure,
  Kind,
  Options,
  Settings,
  Turn,
  UserTurn,
} from '../client.ts'
import type { Feature } from '../features.ts'
import { ensure, equal } from '../judge.ts'
import { REPORT, TOOLS } from '../tools.ts'
import { judgeVectors } from './common.ts'

/** How a model of LangChain is made for a request; most of what is asked for stands there. */
interface Maker {
  make(options: Options): BaseChatModel
  /** One that tells two probable tokens beside each, where it can. */
  telling?: BaseChatModel
  /** Fields of a call beside `stop` and `signal`. */
  call(options: Options): object
  embeddings?: OpenAIEmbeddings
}

/** Its agents are another package. */
const LACKS: readonly Feature[] = [
  'helper',
  'toolLoop',
  'countTokens',
  'models',
  'model',
  'serverTool',
  'several',
  'stored',
]

const chatOf = (settings: Settings, fields: object) =>
  new ChatOpenAI({
    model: settings.model,
    apiKey: settings.apiKey,
    configuration: { baseURL: settings.baseURL, dangerouslyAllowBrowser: true },
    ...fields,
  })

const callOpenai = ({ json, tools: choice, single }: Options): object => ({
  ...(json === 'object' && { response_format: { type: 'json_object' } }),
  ...(choice && { tool_choice: choice, parallel_tool_calls: !single }),
})

export const langchainOpenai: Kind<AIMessage> = {
  title: 'ChatOpenAI',
  packages: ['@langchain/core', '@langchain/openai'],
  lacks: [...LACKS, 'document'],
  create: (settings) =>
    createClient({
      make: ({ limit, topP, think }) =>
        chatOf(settings, {
          maxTokens: limit,
          topP,
          ...(think && { modelKwargs: { reasoning_effort: 'minimal' } }),
        }),
      call: callOpenai,
      telling: chatOf(settings, { maxTokens: 4, logprobs: true, topLogprobs: 2 }),
      embeddings: new OpenAIEmbeddings({
        model: settings.embedder,
        apiKey: settings.apiKey,
        configuration: { baseURL: settings.baseURL, dangerouslyAllowBrowser: true },
      }),
    }),
}

export const langchainResponses: Kind<AIMessage> = {
  title: 'ChatOpenAI, responses',
  packages: ['@langchain/core', '@langchain/openai'],
  lacks: [...LACKS, 'document', 'stop', 'embeddings', 'toolsNone', 'toolsRequired'],
  force: 'weather',
  note: 'With `/v1/responses`, `ChatOpenAI` sends `tool_choice` only if it names a tool.',
  create: (settings) =>
    createClient({
      make: ({ limit, topP, think }) =>
        chatOf(settings, {
          useResponsesApi: true,
          maxTokens: limit,
          topP,
          ...(think && { modelKwargs: { reasoning: { effort: 'minimal', summary: 'auto' } } }),
        }),
      call: callOpenai,
    }),
}

export const langchainAnthropic: Kind<AIMessage> = {
  title: 'ChatAnthropic',
  thoughts: 16,
  packages: ['@langchain/core', '@langchain/anthropic'],
  lacks: [...LACKS, 'document', 'jsonObject', 'embeddings'],
  create: (settings) =>
    createClient({
      make: ({ limit, topP, think }) =>
        new ChatAnthropic({
          model: settings.model,
          apiKey: settings.apiKey,
          anthropicApiUrl: settings.origin,
          clientOptions: { dangerouslyAllowBrowser: true },
          maxTokens: limit,
          topP,
          ...(think && { thinking: { type: 'enabled', budget_tokens: 16 } }),
        }),
      call: ({ tools: choice, single }) => {
        if (!choice) return {}
        const tool_choice = choice === 'required' ? 'any' : choice
        if (!single) return { tool_choice }
        return { tool_choice: { type: tool_choice, disable_parallel_tool_use: true } }
      },
    }),
}

const tools = TOOLS.map(({ name, description, input }) =>
  tool((given) => JSON.stringify({ of: given }), { name, description, schema: input }),
)

function createClient({ make, call, telling, embeddings }: Maker): Client<AIMessage> {
  const ready = (options: Options) => {
    const model = make(options)
    if (!options.tools) return model
    ensure(model.bindTools !== undefined, 'it binds no tools')
    return model.bindTools(tools, call(options))
  }
  const calling = (options: Options) => ({
    ...(options.stop && { stop: [options.stop] }),
    ...(options.signal && { signal: options.signal }),
    ...(!options.tools && call(options)),
  })
  return {
    async ask(turns, options = {}) {
      const messages = messagesOf(turns, options)
      if (options.json !== 'schema') {
        return answerOf(await ready(options).invoke(messages, calling(options)), options)
      }
      const model = make(options).withStructuredOutput(REPORT, { includeRaw: true })
      const { raw, parsed } = await model.invoke(messages)
      const answer = answerOf(raw as AIMessage, options)
      return { ...answer, text: JSON.stringify(parsed) }
    },

    async stream(turns, options, tell) {
      const chunks = await ready(options).stream(messagesOf(turns, options), calling(options))
      let whole: AIMessageChunk | undefined
      for await (const chunk of chunks as AsyncIterable<AIMessageChunk>) {
        whole = whole ? whole.concat(chunk) : chunk
        if (chunk.text !== '') tell(chunk.text)
      }
      ensure(whole !== undefined, 'there were no chunks')
      return answerOf(whole, options)
    },

    is: isError,
    complaint(thrown) {
      const { status, message } = thrown as { status?: number; message: string }
      const said = message.replace(/\n\nTroubleshooting URL[^]*$/, '').replace(/^\d{3} /, '')
      // The one SDK gives the message, the other the whole body.
      if (!said.startsWith('{')) return { status, message: said }
      const { error } = JSON.parse(said) as { error: { message: string } }
      return { status, message: error.message }
    },

    own: {
      ...(telling && {
        async logprobs() {
          const { text, response_metadata: metadata } = await telling.invoke('What is inorigin?')
          const { content } = metadata['logprobs'] as {
            content: Array<{ token: string; top_logprobs: unknown[] }>
          }
          equal(content.map(({ token }) => token).join(''), text, 'the tokens')
          const two = content.every((token) => token.top_logprobs.length === 2)
          ensure(two, 'there are not two beside each')
        },
      }),
      ...(embeddings && {
        async embeddings() {
          judgeVectors(await embeddings.embedDocuments(['a cat', 'a kitten']), 2)
          judgeVectors([await embeddings.embedQuery('a cat')], 1)
        },
      }),
    },
  }
}

function humanOf({ text, image }: UserTurn): HumanMessage {
  if (image === undefined) return new HumanMessage(text)
  const url = `data:image/png;base64,${image}`
  const content = [
    { type: 'text', text },
    { type: 'image_url', image_url: { url } },
  ]
  return new HumanMessage({ content })
}

function messagesOf(turns: ReadonlyArray<Turn<AIMessage>>, { system }: Options): BaseMessage[] {
  const messages = turns.flatMap((turn): BaseMessage[] => {
    if (turn.role === 'user') return [humanOf(turn)]
    if (turn.role === 'assistant') return [turn.own]
    return turn.results.map(
      ({ call, text }) =>
        new ToolMessage({ content: text, tool_call_id: call.id, name: call.name }),
    )
  })
  return system ? [new SystemMessage(system), ...messages] : messages
}

function answerOf(message: AIMessage, { stop }: Options): Answer<AIMessage> {
  const { text, tool_calls: calls = [], usage_metadata: usage } = message
  // Of an answer that was streamed, some of it stands there.
  const { response_metadata: metadata, additional_kwargs: more } = message
  ensure(usage !== undefined, 'there is no usage')
  equal(usage.total_tokens, usage.input_tokens + usage.output_tokens, 'the sum of tokens')
  return {
    text,
    thought: thoughtOf(message),
    calls: calls.map(({ id = '', name, args }) => ({ id, name, input: args })),
    end: endOf({ ...more, ...metadata }, stop, calls.length > 0),
    usage: {
      input: usage.input_tokens,
      output: usage.output_tokens,
      thought: usage.output_token_details?.reasoning,
    },
    own: message,
  }
}

/** The one style has it beside the content, the others within. */
function thoughtOf({ contentBlocks, additional_kwargs: more }: AIMessage): string {
  const within = contentBlocks.map((block) =>
    block.type === 'reasoning' ? String(block.reasoning ?? '') : '',
  )
  return within.join('') || String(more['reasoning_content'] ?? '')
}

function endOf(metadata: Record<string, unknown>, stop: string | undefined, called: boolean): End {
  const reason = metadata['finish_reason'] ?? metadata['stop_reason'] ?? metadata['status']
  switch (reason) {
    case 'length':
    case 'max_tokens':
    case 'incomplete':
      return 'limit'
    case 'tool_calls':
    case 'tool_use':
      return 'calls'
    case 'stop_sequence':
      return 'stop text'
    case 'stop':
    case 'end_turn':
      return stop === undefined ? 'stop' : 'stop text'
    case 'completed':
      return called ? 'calls' : 'stop'
    default:
      throw new Error(`it ended by ${String(reason)}`)
  }
}

const STATUS = { invalid: 400, unauthorised: 401, unknown: 404, tooLarge: 413 } as const
const CODES: Readonly<Record<string, string>> = {
  unauthorised: 'MODEL_AUTHENTICATION',
  unknown: 'MODEL_NOT_FOUND',
}

/** The errors of the SDKs, with codes of its own, and one class for a prompt that is too long. */
function isError(failure: Failure, thrown: unknown): boolean {
  if (failure === 'overflow') return ContextOverflowError.isInstance(thrown)
  const { status, lc_error_code: code } = thrown as { status?: number; lc_error_code?: string }
  const expected = CODES[failure]
  return status === STATUS[failure] && (expected === undefined || code === expected)
}
