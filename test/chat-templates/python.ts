/** Renders templates with Python's jinja2, in the environment of transformers. */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import type { Body, BodyMessage } from './conversations.ts'

/** Variables of a template as a caller of transformers passes them. */
export interface Variables {
  messages: readonly object[]
  tools: readonly object[] | null
  documents: null
  add_generation_prompt: boolean
  bos_token: string
  eos_token: string
  /** `true` if the last message ends with the mark of a prefilled answer. */
  continues: boolean
}

/** Texts of special tokens, for Python and for our own prompts. */
export const TOKENS = { bos_token: '<s>', eos_token: '</s>' }

/** Result of Python: the text, or the type and message of the exception. */
export interface PythonResult {
  text?: string
  error?: string
  message?: string
}

/** A process of Python, which renders one template after the other. */
export class Python {
  readonly #process: ChildProcessByStdio<Writable, Readable, null>
  readonly #lines: AsyncIterator<string>

  constructor() {
    const script = join(process.cwd(), 'test/chat-templates/environment.py')
    this.#process = spawn('python3', [script], { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#lines = createInterface({ input: this.#process.stdout })[Symbol.asyncIterator]()
  }

  async render(template: string, variables: Variables): Promise<PythonResult> {
    this.#process.stdin.write(`${JSON.stringify({ template, variables })}\n`)
    const { value, done } = await this.#lines.next()
    if (done) throw new Error('Python has ended. Install jinja2: pip install jinja2')
    return JSON.parse(value) as PythonResult
  }

  close(): void {
    this.#process.stdin.end()
  }
}

/**
 * Returns the variables of a body, in the ways in which callers of Python write it: arguments of
 * calls as an object or as text, and an empty content as None or left out. `mark` ends the text of a
 * prefilled answer.
 */
export function toVariables(body: Body, mark: string): Variables[] {
  const hasCalls = body.messages.some((message) => message.tool_calls)
  const hasNull = body.messages.some(({ content }) => content === null)
  const ways = [true, ...(hasCalls ? [false] : [])].flatMap((parsed) =>
    [true, ...(hasNull ? [false] : [])].map((keepsNull) => ({ parsed, keepsNull })),
  )
  return ways.map(({ parsed, keepsNull }) => {
    const messages = body.messages.map((message) => toPythonMessage(message, parsed, keepsNull))
    const last = messages.at(-1)
    const continues = body.continue_final_message === true
    if (continues && last) last['content'] = `${String(last['content'])}${mark}`
    return {
      messages,
      tools: body.tools ?? null,
      documents: null,
      add_generation_prompt: !continues,
      continues,
      ...TOKENS,
    }
  })
}

function toPythonMessage(
  { role, content, tool_calls: calls, ...rest }: BodyMessage,
  parsed: boolean,
  keepsNull: boolean,
): Record<string, unknown> {
  return {
    role,
    ...((content !== null || keepsNull) && { content: toPythonContent(content) }),
    ...rest,
    ...(calls && {
      tool_calls: calls.map((call) => {
        const { name, arguments: text } = call.function
        return { ...call, function: { name, arguments: parsed ? JSON.parse(text) : text } }
      }),
    }),
  }
}

/** Images have another type in Python. */
const toPythonContent = (content: unknown): unknown =>
  Array.isArray(content)
    ? content.map((part: { type: string }) =>
        part.type === 'image_url' ? { type: 'image' } : part,
      )
    : content
