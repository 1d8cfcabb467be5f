/** Bodies of chat completions of the kinds that clients send, for the comparison with Python. */

/** A message of a body. */
export interface BodyMessage {
  role: string
  content?: unknown
  reasoning_content?: string
  reasoning?: string
  thinking?: string
  tool_calls?: readonly BodyCall[] | undefined
  tool_call_id?: string
  name?: string
}

/** A tool call of a body. */
export interface BodyCall {
  id: string
  type: 'function'
  function: { name: string; arguments: string }
}

/** Body of a chat completion, without its model. */
export interface Body {
  messages: readonly BodyMessage[]
  tools?: readonly object[]
  continue_final_message?: boolean
}

const system = (content: unknown): BodyMessage => ({ role: 'system', content })
const user = (content: unknown): BodyMessage => ({ role: 'user', content })
const assistant = (content: unknown, more: Partial<BodyMessage> = {}): BodyMessage => ({
  role: 'assistant',
  content,
  ...more,
})
const call = (id: string, name: string, args: object): BodyCall => ({
  id,
  type: 'function',
  function: { name, arguments: JSON.stringify(args) },
})
const calls = (content: unknown, ...all: readonly BodyCall[]): BodyMessage =>
  assistant(content, { tool_calls: all })
const result = (id: string, content: unknown, more: Partial<BodyMessage> = {}): BodyMessage => ({
  role: 'tool',
  tool_call_id: id,
  content,
  ...more,
})

const tool = (name: string, description: string, parameters: object): object => ({
  type: 'function',
  function: { name, description, parameters },
})
const TIDE = tool('get_tide', 'Tells the height of the tide.', {
  type: 'object',
  properties: {
    port: { type: 'string', description: 'Name of the port.' },
    hours: { type: 'integer', description: 'Hours from now.', default: 0 },
    unit: { type: 'string', enum: ['m', 'ft'] },
  },
  required: ['port'],
})
const MAIL = tool('send_mail', 'Sends a "mail" & returns <nothing>.', {
  $schema: 'http://json-schema.org/draft-07/schema#',
  type: 'object',
  properties: {
    to: { type: 'array', items: { type: 'string' } },
    body: { type: 'string' },
    options: {
      type: 'object',
      properties: { urgent: { type: 'boolean' }, delay: { type: ['number', 'null'] } },
    },
  },
  required: ['to', 'body'],
  additionalProperties: false,
})
const PING = tool('ping', 'Pings.', { type: 'object', properties: {} })
const TOOLS = [TIDE, MAIL, PING]

const A = 'k1m2n3o4p'
const B = 'q5r6s7t8u'
const tide = call(A, 'get_tide', { port: 'Brest', hours: 3 })
const mail = call(B, 'send_mail', {
  to: ['ada@example.com', 'bo@example.com'],
  body: 'Two lines:\n"a" < b & c',
  options: { urgent: false, delay: null },
})
const ping = call(B, 'ping', {})

const HELLO = user('Hello')
const BRIEF = system('Be brief.')
const SEA = user('How high is the tide in Brest?')
const WATER = assistant('It is low water.')

/** A picture of one pixel. */
const PIXEL =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const image = { type: 'image_url', image_url: { url: PIXEL } }
const text = (content: string): object => ({ type: 'text', text: content })

const thought = assistant('It is low water.', { reasoning_content: 'The moon is\nnew.' })
const thoughtCall = { ...calls('', tide), reasoning_content: 'A tool knows.' }

/** A history of calls with this many rounds. */
const rounds = (count: number): BodyMessage[] =>
  Array.from({ length: count }, (_, index) => {
    const id = `call${String(index).padStart(5, '0')}`
    return [
      user(`Round ${index}`),
      calls('', call(id, 'get_tide', { port: `P${index}`, hours: index })),
      result(id, `${index} m`),
      assistant(`It is ${index} m.`),
    ]
  }).flat()

/** The bodies by their names. */
export const BODIES: Readonly<Record<string, Body>> = {
  user: { messages: [HELLO] },
  'system and user': { messages: [BRIEF, HELLO] },
  'two turns': { messages: [HELLO, assistant('Hi!'), SEA] },
  'two turns with a system': { messages: [BRIEF, HELLO, assistant('Hi!'), SEA] },
  'three turns': { messages: [HELLO, assistant('Hi!'), SEA, WATER, user('Thanks.')] },
  'empty system': { messages: [system(''), HELLO] },
  'empty user': { messages: [user('')] },
  'space around texts': { messages: [system(' Be brief.\n'), user('\n Hi  ')] },
  'space around an answer': { messages: [HELLO, assistant('\n\n Hi!  \n'), SEA] },
  'several lines': { messages: [user('one\n\ntwo\n\n\nthree')] },
  'quotes and signs': { messages: [user('"a" \'b\' <c> & \\d {e} %f $g `h`')] },
  'other scripts': { messages: [system('Réponds en 日本語.'), user('Привет 👋🏽 नमस्ते')] },
  'template syntax': { messages: [user('What does {{ x }} or {% set y %} do? {# no #}')] },
  'a long text': { messages: [user('The tide rises. '.repeat(400))] },
  'two users': { messages: [HELLO, SEA] },
  'two users and a system': { messages: [BRIEF, HELLO, SEA] },
  'two assistants': { messages: [HELLO, assistant('Hi!'), assistant('And?'), SEA] },
  'two systems': { messages: [BRIEF, system('Be kind.'), HELLO] },
  'a later system': { messages: [HELLO, assistant('Hi!'), system('Be kind.'), SEA] },
  'ends with an assistant': { messages: [HELLO, assistant('Hi!')] },
  'begins with an assistant': { messages: [assistant('Hi!'), HELLO] },
  'a developer': { messages: [{ role: 'developer', content: 'Be brief.' }, HELLO] },
  'parts of text': { messages: [user([text('Hello')])] },
  'two parts of text': { messages: [user([text('Hello'), text('you')])] },
  'a system of parts': { messages: [system([text('Be brief.')]), HELLO] },
  tools: { messages: [SEA], tools: TOOLS },
  'tools and a system': { messages: [BRIEF, SEA], tools: TOOLS },
  'one tool': { messages: [SEA], tools: [TIDE] },
  'a tool without parameters': { messages: [HELLO], tools: [PING] },
  'tools in a later turn': { messages: [HELLO, assistant('Hi!'), SEA], tools: TOOLS },
  'a call and its result': { messages: [SEA, calls('', tide), result(A, '4 m')], tools: TOOLS },
  'a call with content null': {
    messages: [SEA, calls(null, tide), result(A, '4 m')],
    tools: TOOLS,
  },
  'a call with text': { messages: [SEA, calls('Looking.', tide), result(A, '4 m')], tools: TOOLS },
  'a call with data': { messages: [SEA, calls('', mail), result(B, 'sent')], tools: TOOLS },
  'a call without arguments': { messages: [SEA, calls('', ping), result(B, 'pong')], tools: TOOLS },
  'a call with a system': {
    messages: [BRIEF, SEA, calls('', tide), result(A, '4 m')],
    tools: TOOLS,
  },
  'parallel calls': {
    messages: [SEA, calls('', tide, mail), result(A, '4 m'), result(B, 'sent')],
    tools: TOOLS,
  },
  'parallel calls of one tool': {
    messages: [
      SEA,
      calls('', tide, call(B, 'get_tide', { port: 'Dover' })),
      result(A, '4 m'),
      result(B, '5 m'),
    ],
    tools: TOOLS,
  },
  'calls one after the other': {
    messages: [SEA, calls('', tide), result(A, '4 m'), calls('', mail), result(B, 'sent')],
    tools: TOOLS,
  },
  'a call and an answer': {
    messages: [SEA, calls('', tide), result(A, '4 m'), WATER, user('Thanks.')],
    tools: TOOLS,
  },
  'a named result': {
    messages: [SEA, calls('', tide), result(A, '4 m', { name: 'get_tide' })],
    tools: TOOLS,
  },
  'a result in JSON': {
    messages: [SEA, calls('', tide), result(A, '{"height": 4.0, "unit": "m"}')],
    tools: TOOLS,
  },
  'an empty result': { messages: [SEA, calls('', tide), result(A, '')], tools: TOOLS },
  'a result of parts': {
    messages: [SEA, calls('', tide), result(A, [text('4 m')])],
    tools: TOOLS,
  },
  'a user after a result': {
    messages: [SEA, calls('', tide), result(A, '4 m'), user('And?')],
    tools: TOOLS,
  },
  'a call without tools': { messages: [SEA, calls('', tide), result(A, '4 m')] },
  'calls without tools': {
    messages: [
      BRIEF,
      SEA,
      calls('', tide, mail),
      result(A, '4 m'),
      result(B, 'sent'),
      WATER,
      HELLO,
    ],
  },
  'ten rounds of calls': { messages: [...rounds(10), HELLO], tools: TOOLS },
  'reasoning in the history': { messages: [SEA, thought, HELLO] },
  'reasoning in the text': {
    messages: [SEA, assistant('<think>\nThe moon is new.\n</think>\n\nIt is low water.'), HELLO],
  },
  'reasoning before a call': { messages: [SEA, thoughtCall, result(A, '4 m')], tools: TOOLS },
  'reasoning before two calls': {
    messages: [
      SEA,
      thoughtCall,
      result(A, '4 m'),
      { ...calls('', mail), reasoning_content: 'And now the mail.' },
      result(B, 'sent'),
    ],
    tools: TOOLS,
  },
  'reasoning of an earlier turn': {
    messages: [SEA, thoughtCall, result(A, '4 m'), thought, HELLO],
    tools: TOOLS,
  },
  'an image': { messages: [user([image, text('Name it.')])] },
  'an image after the text': { messages: [user([text('Name it.'), image])] },
  'two images': { messages: [user([image, text('and'), image, text('Compare.')])] },
  'an image in an earlier turn': {
    messages: [user([text('Name it.'), image]), assistant('A pixel.'), user('Sure?')],
  },
  prefill: { messages: [HELLO, assistant('It is')], continue_final_message: true },
  'prefill after a turn': {
    messages: [BRIEF, HELLO, assistant('Hi!'), SEA, assistant('The tide')],
    continue_final_message: true,
  },
}
