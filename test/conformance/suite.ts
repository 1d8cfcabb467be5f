/** The checks that every client goes through, whatever words it has for things. */
import type { Answer, Failure, Kind, Options, Settings, Turn } from './client.ts'
import type { Feature } from './features.ts'
import { ensure, equal, thrownBy } from './judge.ts'
import type { Drive, Fields } from './tap.ts'
import { judgeCall, REPORT } from './tools.ts'

/** Tokens of the model by which it is driven where a check must not depend on what it likes. */
export interface Tokens {
  /** Those that end an answer. */
  end: readonly number[]
  /** `{` and `}` */
  braces: readonly number[]
  thoughtEnd: number
  callStart: number
}

/** Resolves, with the reason where it was refused by name; rejects where it is not as it must be. */
export type Check = () => Promise<string | void>
export type Checks = Partial<Record<Feature, Check>>

type Driver = (by: Drive | null) => void

const QUESTION = 'What is inorigin?'
const LIMIT = 24
/** Room for thoughts of the smallest effort and some text. */
const THINKING = { think: true, limit: 100 } as const
/** Tokens of the effort `minimal`. */
const MINIMAL = 64
const TOO_LARGE = 33 * 1024 * 1024

export function checksOf<Own>(
  kind: Kind<Own>,
  settings: Settings,
  drive: Driver,
  tokens: Tokens,
): Checks {
  const client = kind.create(settings)
  const { own = {}, refused = {}, silent } = client
  const { force = 'required', thoughts = MINIMAL } = kind
  const ask = (turns: ReadonlyArray<Turn<Own>>, options?: Options): Promise<Answer<Own>> =>
    client.ask(turns, { limit: LIMIT, ...options })
  const say = (text = QUESTION): Turn<Own> => ({ role: 'user', text })
  const bias = (ids: readonly number[], by: number): Fields => ({
    logit_bias: Object.fromEntries(ids.map((id) => [id, by])),
  })
  const add = (...fields: Fields[]) => drive(() => Object.assign({}, ...fields) as Fields)
  const GREEDY = { temperature: 0 }
  const ENDLESS = bias(tokens.end, -100)
  /** The model by itself ends neither its thoughts nor the answer. */
  const THOUGHTFUL = bias([...tokens.end, tokens.thoughtEnd], -100)

  async function stream(options: Options): Promise<Answer<Own> & { pieces: string[] }> {
    const pieces: string[] = []
    const tell = (piece: string) => void pieces.push(piece)
    const answer = await client.stream([say()], { limit: LIMIT, ...options }, tell)
    equal(pieces.join(''), answer.text, 'the pieces together')
    return { ...answer, pieces }
  }

  function judgeCalls({ calls, end }: Answer<Own>, least: number, most = Infinity): void {
    ensure(calls.length >= least && calls.length <= most, `there are ${calls.length} calls`)
    calls.forEach(judgeCall)
    equal(new Set(calls.map(({ id }) => id)).size, calls.length, 'how many ids of calls there are')
    if (calls.length > 0) equal(end, 'calls', 'the end')
  }

  function judgeThought({ text, thought, end, usage }: Answer<Own>): void {
    if (silent !== 'thoughts') ensure(thought.trim() !== '', 'there is no thought')
    ensure(text.trim() !== '' && !text.includes('think>'), `behind its thoughts it said "${text}"`)
    equal(end, 'limit', 'the end')
    if (usage.thought !== undefined) equal(usage.thought, thoughts, 'tokens of thought')
  }

  const fails =
    (failure: Failure, names: string, attempt: () => Promise<unknown>): Check =>
    async () => {
      const thrown = await thrownBy(attempt())
      const { message } = client.complaint(thrown)
      ensure(client.is(failure, thrown), `it is told as ${String(thrown)}`)
      ensure(message.includes(names), `the message is ${message}`)
    }

  const refuses =
    (attempt: () => Promise<unknown>): Check =>
    async () => {
      const thrown = await thrownBy(attempt())
      const { message } = client.complaint(thrown)
      ensure(client.is('invalid', thrown), `it is told as ${String(thrown)}`)
      ensure(message.includes('`'), `no field is named by ${message}`)
      return message
    }

  const shared: Checks = {
    async text() {
      const { text, end } = await ask([say()])
      ensure(text !== '', 'there is no text')
      ensure(end === 'stop' || end === 'limit', `it ended by ${end}`)
    },
    async turns() {
      const first = await ask([say()])
      const second = await ask([
        say(),
        { role: 'assistant', own: first.own },
        say('And what else?'),
      ])
      ensure(second.text !== '', 'there is no text')
      ensure(second.usage.input > first.usage.input, 'the first turn was not read')
    },
    async system() {
      const [without, told] = [
        await ask([say()]),
        await ask([say()], { system: 'Answer briefly.' }),
      ]
      ensure(told.usage.input > without.usage.input, 'the system prompt was not read')
    },
    async stream() {
      add(GREEDY)
      const [plain, streamed] = [await ask([say()]), await stream({})]
      equal(streamed.text, plain.text, 'the streamed text')
      equal(streamed.end, plain.end, 'the end')
      ensure(streamed.pieces.length > 1, 'it came in one piece')
    },
    async usage() {
      add(GREEDY)
      const [plain, streamed] = [await ask([say()]), await stream({})]
      const { input, output } = plain.usage
      ensure(input > 0 && output > 0 && output <= LIMIT, `usage is ${input} and ${output}`)
      equal([streamed.usage.input, streamed.usage.output], [input, output], 'usage of the stream')
    },
    async limit() {
      add(GREEDY, ENDLESS)
      const { end, usage } = await ask([say()], { limit: 3 })
      equal([end, usage.output], ['limit', 3], 'the end and its tokens')
    },
    async stop() {
      add(GREEDY)
      const { text } = await ask([say()])
      const stop = text
        .slice(Math.floor(text.length / 2))
        .trim()
        .slice(0, 5)
      const answer = await ask([say()], { stop })
      equal(answer.text, text.slice(0, text.indexOf(stop)), 'the text before the stop')
      equal(answer.end, 'stop text', 'the end')
    },
    async abort() {
      add(GREEDY, ENDLESS)
      const controller = new AbortController()
      let pieces = 0
      const tell = () => void (++pieces === 3 && controller.abort())
      const options = { limit: 900, signal: controller.signal }
      await client.stream([say()], options, tell).catch(() => undefined)
      ensure(pieces >= 3 && pieces < 20, `${pieces} pieces came`)
      const { usage } = await ask([say()], { limit: 1 })
      equal(usage.output, 1, 'tokens of the next answer')
    },
    async toolsAuto() {
      judgeCalls(await ask([say()], { tools: 'auto' }), 0)
      add(GREEDY, bias([tokens.callStart], 100))
      judgeCalls(await ask([say()], { tools: 'auto', limit: 160 }), 1)
    },
    async toolsNone() {
      const { text } = await ask([say()], { tools: 'none' })
      ensure(text !== '', 'there is no text')
      // What makes a call of any answer that may have one.
      add(GREEDY, bias([tokens.callStart], 100))
      judgeCalls(await ask([say()], { tools: 'none', limit: 160 }), 0, 0)
    },
    async toolsRequired() {
      judgeCalls(await ask([say()], { tools: 'required', limit: 160 }), 1)
    },
    async toolsNamed() {
      const answer = await ask([say()], { tools: 'weather', limit: 160 })
      judgeCalls(answer, 1)
      equal([...new Set(answer.calls.map(({ name }) => name))], ['weather'], 'what was called')
    },
    async toolsStream() {
      const { calls, end } = await stream({ tools: force, limit: 160 })
      judgeCalls({ calls, end } as Answer<Own>, 1)
    },
    async toolsTwo() {
      const first = await askForTwo()
      judgeCalls(first, 2)
      const results = first.calls.map((call) => ({ call, text: `{"of":"${call.name}"}` }))
      drive(null)
      const turns = [
        say(),
        { role: 'assistant', own: first.own },
        { role: 'results', results },
      ] as const
      const second = await ask(turns, { tools: 'auto', limit: 160 })
      judgeCalls(second, 0)
      ensure(second.usage.input > first.usage.input, 'the results were not read')
    },
    async toolsSingle() {
      add(GREEDY, ENDLESS)
      judgeCalls(await ask([say()], { tools: force, single: true, limit: 160 }), 1, 1)
    },
    async jsonObject() {
      add(GREEDY, bias(tokens.braces, 100))
      const value: unknown = JSON.parse((await ask([say()], { json: 'object' })).text)
      ensure(
        typeof value === 'object' && value !== null && !Array.isArray(value),
        'it is no object',
      )
    },
    async jsonSchema() {
      REPORT.parse(JSON.parse((await ask([say()], { json: 'schema', limit: 100 })).text))
    },
    async thinking() {
      equal((await ask([say()])).thought, '', 'a thought that nobody asked for')
      add(THOUGHTFUL)
      const first = await ask([say()], THINKING)
      judgeThought(first)
      const turns = [say(), { role: 'assistant', own: first.own }, say('And what else?')] as const
      judgeThought(await ask(turns, THINKING))
    },
    async thinkingStream() {
      add(THOUGHTFUL)
      judgeThought(await stream(THINKING))
    },
    async image() {
      add(GREEDY)
      const seer = kind.create({ ...settings, model: settings.seer.model })
      const { question, images, tokens: expected } = settings.seer
      const see = (image?: string): Promise<Answer<Own>> =>
        seer.ask([{ role: 'user', text: question, ...(image && { image }) }], { limit: 16 })
      const none = await see()
      for (const { data, color } of images) {
        const { text, usage } = await see(data)
        equal(usage.input - none.usage.input, expected, 'tokens of an image')
        ensure(text.includes(color), `an image in ${color} has the answer "${text}"`)
      }
    },
    invalid: fails('invalid', '`top_p`', () => ask([say()], { topP: 9 })),
    unauthorised: fails('unauthorised', 'key', () =>
      kind.create({ ...settings, apiKey: 'wrong' }).ask([say()], { limit: 1 }),
    ),
    unknown: fails('unknown', '@nobody/nothing', () =>
      kind.create({ ...settings, model: '@nobody/nothing' }).ask([say()], { limit: 1 }),
    ),
    tooLarge: fails('tooLarge', '33554432 bytes', () => ask([say('a'.repeat(TOO_LARGE))])),
    overflow: fails('overflow', 'prompt is too long', () => ask([say('a word, '.repeat(2000))])),
  }

  /** Which answers have two calls is a matter of chance, and of how unlikely an end is made. */
  async function askForTwo(): Promise<Answer<Own>> {
    for (let attempt = 0; attempt < 100; attempt++) {
      add({ temperature: 1, seed: attempt }, bias(tokens.end, -attempt))
      const answer = await ask([say()], { tools: force, limit: 200 })
      if (answer.calls.length > 1 && answer.end === 'calls') return answer
    }
    throw new Error('there never were two calls')
  }

  /** A call, and when its result is there, an answer. */
  const callOnce: Drive = (sent) => {
    const conversation = JSON.stringify(sent['messages'] ?? sent['input'])
    const answered = /"(tool|tool_result|function_call_output)"/.test(conversation)
    return { ...GREEDY, ...bias([tokens.callStart], answered ? -100 : 100) }
  }

  const checks: Checks = { ...shared, ...own }
  const { toolLoop } = own
  if (toolLoop) {
    checks.toolLoop = () => {
      drive(callOnce)
      return toolLoop()
    }
  }
  for (const [feature, attempt] of Object.entries(refused)) {
    checks[feature as Feature] = refuses(attempt)
  }
  for (const feature of kind.lacks) delete checks[feature]
  return checks
}
