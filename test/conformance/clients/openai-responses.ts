/** OpenAI's SDK: responses, which the server keeps. */
import OpenAI, { NotFoundError } from 'openai'
import { zodResponsesFunction, zodTextFormat } from 'openai/helpers/zod'
import type { Answer, Client, End, Kind, Options, Settings, Turn, UserTurn } from '../client.ts'
import { ensure, equal, thrownBy } from '../judge.ts'
import { REPORT, TOOLS } from '../tools.ts'
import { openaiComplaint, openaiError } from './openai-errors.ts'

type Items = OpenAI.Responses.ResponseInputItem[]
type Params = Omit<OpenAI.Responses.ResponseCreateParamsNonStreaming, 'stream'>

export const openaiResponses: Kind<Items> = {
  title: 'responses',
  packages: ['openai'],
  lacks: ['stop', 'toolLoop', 'countTokens', 'models', 'model', 'embeddings', 'several'],
  create: createClient,
}

function createClient({ baseURL, apiKey, model, fetch }: Settings): Client<Items> {
  const openai = new OpenAI({ baseURL, apiKey, fetch, dangerouslyAllowBrowser: true })
  const question = { model, input: 'What is inorigin?' }

  return {
    async ask(turns, options = {}) {
      const body = paramsOf(model, turns, options)
      if (options.json !== 'schema') {
        return answerOf(await openai.responses.create(body, { signal: options.signal }))
      }
      const parsed = await openai.responses.parse(body)
      REPORT.parse(parsed.output_parsed)
      return answerOf(parsed)
    },

    async stream(turns, options, tell) {
      const body = { ...paramsOf(model, turns, options), stream: true as const }
      const events = await openai.responses.create(body, { signal: options.signal })
      let text = ''
      let thought = ''
      const calls = new Map<string, string>()
      let whole: Answer<Items> | undefined
      for await (const event of events) {
        switch (event.type) {
          case 'response.output_text.delta':
            text += event.delta
            tell(event.delta)
            break
          case 'response.reasoning_summary_text.delta':
            thought += event.delta
            break
          case 'response.function_call_arguments.delta':
            calls.set(event.item_id, (calls.get(event.item_id) ?? '') + event.delta)
            break
          case 'response.completed':
          case 'response.incomplete':
            whole = answerOf(event.response)
        }
      }
      ensure(whole !== undefined, 'it broke off')
      equal([whole.text, whole.thought], [text, thought], 'the whole')
      equal(
        whole.calls.map(({ input }) => input),
        [...calls.values()].map(parse),
        'the calls',
      )
      return whole
    },

    is: openaiError,
    complaint: openaiComplaint,

    own: {
      async helper() {
        const stream = openai.responses.stream({ ...question, max_output_tokens: 24 })
        let text = ''
        stream.on('response.output_text.delta', ({ delta }) => (text += delta))
        const response = await stream.finalResponse()
        ensure(text !== '', 'there is no text')
        equal(response.output_text, text, 'the final text')
      },
      async logprobs() {
        const { output, output_text } = await openai.responses.create({
          ...question,
          max_output_tokens: 4,
          include: ['message.output_text.logprobs'],
          top_logprobs: 2,
        })
        const parts = output.flatMap((item) => (item.type === 'message' ? item.content : []))
        const tokens = parts.flatMap((part) => ('logprobs' in part ? (part.logprobs ?? []) : []))
        equal(tokens.map(({ token }) => token).join(''), output_text, 'the tokens')
        ensure(
          tokens.every((token) => token.top_logprobs.length === 2),
          'there are not two beside each',
        )
      },
      async stored() {
        const few = { max_output_tokens: 8 }
        const first = await openai.responses.create({ ...question, ...few })
        const { id, output_text, usage } = await openai.responses.create({
          model,
          input: 'And what else?',
          previous_response_id: first.id,
          ...few,
        })
        const [before, after] = [first.usage?.input_tokens ?? 0, usage?.input_tokens ?? 0]
        ensure(after > before && before > 0, `${before} tokens were read, then ${after}`)
        equal((await openai.responses.retrieve(id)).output_text, output_text, 'the kept text')
        const { data } = await openai.responses.inputItems.list(id, { order: 'asc' })
        equal(
          data.map(({ type }) => type),
          ['message', 'message', 'message'],
          'what was read',
        )
        await openai.responses.delete(id)
        const gone = await thrownBy(openai.responses.retrieve(id))
        ensure(
          gone instanceof NotFoundError,
          `a response that was deleted is told as ${String(gone)}`,
        )
        const lost = openai.responses.create({ ...question, previous_response_id: id })
        const { message } = openaiComplaint(await thrownBy(lost))
        ensure(message.includes('store: false'), `the message is ${message}`)
      },
      async serverTool() {
        const asked = openai.responses.create({ ...question, tools: [{ type: 'web_search' }] })
        const { data, response } = await asked.withResponse()
        ensure(data.output_text !== '', 'there is no text')
        const ignored = response.headers.get('x-inorigin-ignored')
        equal(ignored, 'tools[0]:web_search', 'the header that names what is left out')
      },
    },

    refused: {
      document: () =>
        openai.responses.create({
          model,
          input: asking({
            type: 'input_file',
            filename: 'a.pdf',
            file_data: 'data:application/pdf;base64,JVBERi0=',
          }),
        }),
    },
  }
}

const asking = (part: OpenAI.Responses.ResponseInputContent): Items => [
  { role: 'user', content: [{ type: 'input_text', text: 'What is this?' }, part] },
]

const contentOf = ({
  text,
  image,
}: UserTurn): string | OpenAI.Responses.ResponseInputMessageContentList =>
  image === undefined
    ? text
    : [
        { type: 'input_text', text },
        { type: 'input_image', image_url: `data:image/png;base64,${image}`, detail: 'auto' },
      ]

const parse = (text: string): unknown => JSON.parse(text)

function paramsOf(model: string, turns: ReadonlyArray<Turn<Items>>, options: Options): Params {
  const { system, limit, tools, single, json, think, topP } = options
  return {
    model,
    instructions: system,
    input: turns.flatMap((turn): Items => {
      if (turn.role === 'user') return [{ role: 'user', content: contentOf(turn) }]
      if (turn.role === 'assistant') return turn.own
      return turn.results.map(({ call, text }) => ({
        type: 'function_call_output',
        call_id: call.id,
        output: text,
      }))
    }),
    max_output_tokens: limit,
    top_p: topP,
    ...(tools && {
      tools: TOOLS.map(({ name, description, input }) =>
        zodResponsesFunction({ name, description, parameters: input }),
      ),
      tool_choice: tools === 'weather' ? { type: 'function', name: tools } : tools,
      parallel_tool_calls: !single,
    }),
    ...(json && {
      text: {
        format: json === 'object' ? { type: 'json_object' } : zodTextFormat(REPORT, 'report'),
      },
    }),
    ...(think && {
      reasoning: { effort: 'minimal', summary: 'auto' },
      include: ['reasoning.encrypted_content'],
    }),
  }
}

function answerOf(response: OpenAI.Responses.Response): Answer<Items> {
  const { output, usage, status, incomplete_details: details } = response
  ensure(usage !== undefined, 'there is no usage')
  equal(usage.total_tokens, usage.input_tokens + usage.output_tokens, 'the sum of tokens')
  const calls = output.flatMap((item) =>
    item.type === 'function_call'
      ? [{ id: item.call_id, name: item.name, input: parse(item.arguments) }]
      : [],
  )
  const parts = output.flatMap((item) => (item.type === 'message' ? item.content : []))
  const thoughts = output.flatMap((item) => (item.type === 'reasoning' ? item.summary : []))
  return {
    text: parts.map((part) => (part.type === 'output_text' ? part.text : '')).join(''),
    thought: thoughts.map((part) => part.text).join(''),
    calls,
    end: endOf(status, details, calls.length > 0),
    usage: {
      input: usage.input_tokens,
      output: usage.output_tokens,
      thought: usage.output_tokens_details.reasoning_tokens,
    },
    own: output as Items,
  }
}

function endOf(
  status: OpenAI.Responses.Response['status'],
  details: OpenAI.Responses.Response['incomplete_details'],
  called: boolean,
): End {
  if (status === 'incomplete') {
    equal(details?.reason, 'max_output_tokens', 'why it is incomplete')
    return 'limit'
  }
  equal(status, 'completed', 'the status')
  return called ? 'calls' : 'stop'
}
