/**
 * The model's chat template: a conversation in, the text the model was trained to continue out.
 * Templates come from a catalog and are not trusted, so they run in an interpreter with limits.
 */
import { Environment, Interpreter, Template } from '@huggingface/jinja'
import { InoriginError } from '../../../error.ts'
import type { ChatMessage } from '../../../types/index.ts'
import { modelUnusable } from '../failure.ts'
import { countCharacters } from './size.ts'

/**
 * Bounds of one rendering; a real template uses a thousandth of each. Text may be as much more as
 * the conversation accounts for: so much for each of its characters, and for each message.
 */
const LIMITS = {
  milliseconds: 5_000,
  characters: 8 * 1024 * 1024,
  charactersForOne: 4,
  charactersForMessage: 256,
  items: 1_000_000,
}

export interface ChatTemplate {
  /** The text of the conversation up to where the answer begins. */
  render(messages: readonly ChatMessage[]): string
}

/** The template itself said no, through `raise_exception`. */
class Refusal extends Error {}

class Exceeded extends Error {}

/** `tokens` are the names a template may use, such as `bos_token`. */
export function parseTemplate(
  source: string,
  tokens: Readonly<Record<string, string>>,
): ChatTemplate {
  const program = readProgram(source)

  const attempt = (messages: readonly ChatMessage[]): string => {
    const environment = new Environment()
    const variables = {
      ...globals,
      ...tokens,
      messages: messages.map(({ role, content }) => ({ role, content })),
      add_generation_prompt: true,
      // Reasoning is shown to nobody here, so models that can do without are asked to.
      enable_thinking: false,
    }
    for (const [name, value] of Object.entries(variables)) environment.set(name, value)
    return String(new LimitedInterpreter(environment, messages).run(program).value)
  }

  /** Tried with marks in place of what the system messages say, which the text may say anyway. */
  const keepsSystem = (text: string, messages: readonly ChatMessage[]): boolean => {
    let unique = 100_000_000
    while (text.includes(String(unique))) unique += 1
    let count = 0
    const marked = messages.map((message) => {
      if (message.role !== 'system' || message.content.trim() === '') return message
      count += 1
      return { ...message, content: `(${unique}.${count})` }
    })
    if (count === 0) return true
    const kept = attempt(marked).match(new RegExp(`\\(${unique}\\.\\d+\\)`, 'g'))
    return new Set(kept).size === count
  }

  const render = (messages: readonly ChatMessage[]): string => {
    try {
      const text = attempt(messages)
      if (keepsSystem(text, messages)) return text
    } catch (thrown) {
      if (!(thrown instanceof Refusal)) throw explain(thrown)
    }
    // Templates without a system role either refuse it or leave it out.
    try {
      return attempt(fold(messages))
    } catch (thrown) {
      throw explain(thrown)
    }
  }
  return { render }
}

const readProgram = (source: string): Template['parsed'] => {
  try {
    return new Template(source).parsed
  } catch (cause) {
    throw modelUnusable(`its chat template cannot be read (${String(cause)}).`, cause)
  }
}

function explain(thrown: unknown): InoriginError {
  if (thrown instanceof Refusal) {
    return new InoriginError(
      'invalid_request',
      `This model does not take such a conversation: ${thrown.message}`,
      { code: 'template_refused', param: 'messages', cause: thrown },
    )
  }
  return modelUnusable(`its chat template failed (${String(thrown)}).`, thrown)
}

/**
 * System text moves to the front of the next user turn, and turns of one role in a row become one.
 */
function fold(messages: readonly ChatMessage[]): ChatMessage[] {
  const turns: ChatMessage[] = []
  for (const { role, content } of messages) {
    const turn = role === 'assistant' ? role : 'user'
    const last = turns.at(-1)
    if (last?.role === turn) last.content += `\n\n${content}`
    else turns.push({ role: turn, content })
  }
  return turns
}

type Evaluate = Interpreter['evaluate']

/**
 * The interpreter calls `evaluate` for every node, so that is where all work and growth can be
 * seen.
 */
class LimitedInterpreter extends Interpreter {
  readonly #deadline = performance.now() + LIMITS.milliseconds
  readonly #characters: number

  constructor(environment: Environment, messages: readonly ChatMessage[]) {
    super(environment)
    this.#characters =
      LIMITS.characters +
      LIMITS.charactersForOne * countCharacters(messages) +
      LIMITS.charactersForMessage * messages.length
  }

  override evaluate(...[node, environment]: Parameters<Evaluate>): ReturnType<Evaluate> {
    if (performance.now() > this.#deadline) throw new Exceeded('it runs for too long')
    const result = super.evaluate(node, environment)
    const { value } = result
    if (typeof value === 'string' && value.length > this.#characters) {
      throw new Exceeded('it makes too much text')
    }
    if (Array.isArray(value) && value.length > LIMITS.items)
      throw new Exceeded('it makes too long a list')
    return result
  }
}

const globals = {
  true: true,
  True: true,
  false: false,
  False: false,
  none: null,
  None: null,
  raise_exception: (message: unknown) => {
    throw new Refusal(String(message))
  },
  range: (first: number, stop?: number, step = 1) => {
    const [start, end] = stop === undefined ? [0, first] : [first, stop]
    const length = Math.max(0, Math.ceil((end - start) / step))
    if (!(length <= LIMITS.items)) throw new Exceeded('it makes too long a list')
    return Array.from({ length }, (_, index) => start + index * step)
  },
  strftime_now: (format: string) => formatTime(new Date(), format),
}

/** Dates in English whatever the browser's language, as in the text models were trained on. */
function formatTime(date: Date, format: string): string {
  const name = (options: Intl.DateTimeFormatOptions): string =>
    date.toLocaleDateString('en', options)
  const pad = (value: number): string => String(value).padStart(2, '0')
  const parts: Record<string, () => string> = {
    '%Y': () => String(date.getFullYear()),
    '%m': () => pad(date.getMonth() + 1),
    '%d': () => pad(date.getDate()),
    '%B': () => name({ month: 'long' }),
    '%b': () => name({ month: 'short' }),
    '%A': () => name({ weekday: 'long' }),
    '%a': () => name({ weekday: 'short' }),
    '%H': () => pad(date.getHours()),
    '%M': () => pad(date.getMinutes()),
    '%S': () => pad(date.getSeconds()),
    '%%': () => '%',
  }
  return format.replace(/%[a-zA-Z%]/g, (token) => parts[token]?.() ?? token)
}
