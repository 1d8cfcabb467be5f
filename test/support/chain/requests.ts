/**
 * Requests of both official SDKs in all kinds of answers. A page runs them in one bundle with the
 * SDKs, and Node runs them at the far end of the chain, so that the answers can be compared.
 */
import type Anthropic from '@anthropic-ai/sdk'
import type OpenAI from 'openai'

export interface Clients {
  openai: OpenAI
  anthropic: Anthropic
  model: string
}

/** Parts of an answer that do not depend on who passes it on. */
export interface Answered {
  text: string
  reasoning?: string
  call?: { name: string; input: unknown }
  finish: string | null
  outputTokens: number | undefined
}

const TOOL = {
  name: 'get_weather',
  description: 'Returns the weather of a city.',
  schema: {
    type: 'object' as const,
    properties: { city: { type: 'string' }, unit: { enum: ['celsius', 'fahrenheit'] } },
    required: ['city', 'unit'],
    additionalProperties: false,
  },
}
const SCHEMA = {
  type: 'object' as const,
  properties: { name: { type: 'string' }, age: { type: 'integer', minimum: 0, maximum: 150 } },
  required: ['name', 'age'],
  additionalProperties: false,
}
/** Fields that make an answer repeatable. The types of one SDK leave out the temperature. */
const GREEDY = { temperature: 0, max_tokens: 300 }
const user = (content: string) => [{ role: 'user' as const, content }]
const QUESTION = user('What is inorigin?')
const SUM = user('What is 27 + 15?')
const WEATHER = user('What is the weather in Rome?')
const PERSON = user('Anna is 34 years old. Write it as JSON.')

/** Requests of chat completions, by what they show. */
export const CHAT = {
  text: ({ openai, model }: Clients) =>
    openai.chat.completions.create({ model, messages: QUESTION, ...GREEDY }).then(fromChat),
  async stream({ openai, model }: Clients): Promise<Answered> {
    const stream = await openai.chat.completions.create({
      model,
      messages: QUESTION,
      ...GREEDY,
      stream: true,
      stream_options: { include_usage: true },
    })
    const seen: Answered = { text: '', finish: null, outputTokens: undefined }
    for await (const { choices, usage } of stream) {
      seen.text += choices[0]?.delta.content ?? ''
      seen.finish = choices[0]?.finish_reason ?? seen.finish
      seen.outputTokens = usage?.completion_tokens ?? seen.outputTokens
    }
    return seen
  },
  tool: ({ openai, model }: Clients) =>
    openai.chat.completions
      .create({
        model,
        messages: WEATHER,
        ...GREEDY,
        tools: [
          {
            type: 'function',
            function: {
              name: TOOL.name,
              description: TOOL.description,
              parameters: TOOL.schema,
            },
          },
        ],
        tool_choice: { type: 'function', function: { name: TOOL.name } },
      })
      .then(fromChat),
  schema: ({ openai, model }: Clients) =>
    openai.chat.completions
      .create({
        model,
        messages: PERSON,
        ...GREEDY,
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'person', strict: true, schema: SCHEMA },
        },
      })
      .then(fromChat),
  reasoning: ({ openai, model }: Clients) =>
    openai.chat.completions
      .create({
        model,
        messages: SUM,
        ...GREEDY,
        reasoning_effort: 'low',
      })
      .then(fromChat),
}

/** The same in the style of messages. */
export const MESSAGES = {
  text: ({ anthropic, model }: Clients) =>
    anthropic.messages.create({ model, messages: QUESTION, ...GREEDY }).then(fromMessage),
  stream: ({ anthropic, model }: Clients) =>
    anthropic.messages
      .stream({ model, messages: QUESTION, ...GREEDY })
      .finalMessage()
      .then(fromMessage),
  tool: ({ anthropic, model }: Clients) =>
    anthropic.messages
      .create({
        model,
        messages: WEATHER,
        ...GREEDY,
        tools: [{ name: TOOL.name, description: TOOL.description, input_schema: TOOL.schema }],
        tool_choice: { type: 'tool', name: TOOL.name },
      })
      .then(fromMessage),
  schema: ({ anthropic, model }: Clients) =>
    anthropic.messages
      .create({
        model,
        messages: PERSON,
        ...GREEDY,
        output_config: { format: { type: 'json_schema', schema: SCHEMA } },
      })
      .then(fromMessage),
  reasoning: ({ anthropic, model }: Clients) =>
    anthropic.messages
      .create({
        model,
        messages: SUM,
        ...GREEDY,
        max_tokens: 1_100,
        // The effort `medium` of chat completions stands for the same number.
        thinking: { type: 'enabled', budget_tokens: 1_024 },
      })
      .then(fromMessage),
}

function fromChat({ choices, usage }: OpenAI.Chat.ChatCompletion): Answered {
  const [choice] = choices
  const message = choice?.message as OpenAI.Chat.ChatCompletionMessage & {
    reasoning_content?: string
  }
  const [call] = message.tool_calls ?? []
  return {
    text: message.content ?? '',
    ...(message.reasoning_content && { reasoning: message.reasoning_content }),
    ...(call?.type === 'function' && {
      call: { name: call.function.name, input: JSON.parse(call.function.arguments) as unknown },
    }),
    finish: choice?.finish_reason ?? null,
    outputTokens: usage?.completion_tokens,
  }
}

function fromMessage({ content, stop_reason, usage }: Anthropic.Message): Answered {
  const seen: Answered = { text: '', finish: stop_reason, outputTokens: usage.output_tokens }
  for (const block of content) {
    if (block.type === 'text') seen.text += block.text
    if (block.type === 'thinking') seen.reasoning = block.thinking
    if (block.type === 'tool_use') seen.call = { name: block.name, input: block.input }
  }
  return seen
}
