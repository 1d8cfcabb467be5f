/** Checks of a model's answers: a sentence, a tool call and JSON of a schema. */

interface Completion {
  choices: {
    message: {
      content: string | null
      tool_calls?: { function: { name: string; arguments: string } }[]
    }
    finish_reason: string
  }[]
}

/** Sends a chat completion request of the model. */
export type Ask = (body: object) => Promise<Completion>

/** Fields of every request: greedy, and short enough for a slow device. */
const GREEDY = { temperature: 0, max_completion_tokens: 128, reasoning_effort: 'none' }

const user = (content: string) => [{ role: 'user', content }]

/** Asks for a sum twice. Both answers must be equal and name the result. */
export async function checkSentence(ask: Ask): Promise<string> {
  return tell(async () => {
    const request = { ...GREEDY, messages: user('What is 2 + 3?') }
    const texts: string[] = []
    for (let round = 0; round < 2; round += 1) texts.push(contentOf(await ask(request)))
    if (texts[0] !== texts[1]) return `two answers differ: ${texts.map(quote).join(', ')}`
    return /\b(5|five)\b/i.test(texts[0] ?? '') ? 'ok' : `no 5 in ${quote(texts[0])}`
  })
}

/** Requires a tool call. It must name the tool and pass the city of the question. */
export async function checkTool(ask: Ask): Promise<string> {
  const parameters = {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  }
  const tool = {
    type: 'function',
    function: { name: 'weather', description: 'Returns the weather of a city.', parameters },
  }
  return tell(async () => {
    const messages = user('What is the weather in Oslo?')
    const request = { ...GREEDY, messages, tools: [tool], tool_choice: 'required' }
    const { choices } = await ask(request)
    const call = choices[0]?.message.tool_calls?.[0]?.function
    if (call?.name !== 'weather') return `no call of weather, but ${quote(call)}`
    const { city } = JSON.parse(call.arguments) as { city: unknown }
    return typeof city === 'string' && /oslo/i.test(city) ? 'ok' : `the city is ${quote(city)}`
  })
}

/** Asks for JSON of a schema. It must have the types of the schema and the age of the text. */
export async function checkSchema(ask: Ask): Promise<string> {
  const schema = {
    type: 'object',
    properties: { name: { type: 'string' }, age: { type: 'integer' } },
    required: ['name', 'age'],
    additionalProperties: false,
  }
  return tell(async () => {
    const messages = user('Extract the person: Anna is 36 years old.')
    const json_schema = { name: 'person', schema, strict: true }
    const response_format = { type: 'json_schema', json_schema }
    const text = contentOf(await ask({ ...GREEDY, messages, response_format }))
    const { name, age } = JSON.parse(text) as { name: unknown; age: unknown }
    const isPerson = typeof name === 'string' && age === 36
    return isPerson ? 'ok' : `the person is ${quote(text)}`
  })
}

/** Returns the result of a check, or the message of what it threw. */
async function tell(check: () => Promise<string>): Promise<string> {
  return check().catch((error: unknown) => (error instanceof Error ? error.message : String(error)))
}

const contentOf = ({ choices }: Completion): string => choices[0]?.message.content ?? ''

const quote = (value: unknown): string => String(JSON.stringify(value)).slice(0, 120)
