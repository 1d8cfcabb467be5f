/**
 * Runs untrusted Jinja templates, with limits on time and output. Adds features that real templates
 * use and the library lacks.
 */
import { Environment, Interpreter, Template } from '@huggingface/jinja'
import { modelUnusable } from '../failure.ts'

// Emulates Python behavior that templates expect of values.

/** Results of filters for an undefined variable. */
const EMPTY = new Map<string, unknown>([
  ['trim', ''],
  ['string', ''],
  ['upper', ''],
  ['lower', ''],
  ['items', []],
  ['list', []],
  ['length', 0],
])

/** String methods that the library lacks, or whose argument it ignores. */
const METHODS = new Map<string, (text: string, argument: unknown) => unknown>([
  ['strip', (text, set) => stripEnd(stripStart(text, set), set)],
  ['lstrip', stripStart],
  ['rstrip', stripEnd],
  [
    'removeprefix',
    (text, part) => (text.startsWith(`${part}`) ? text.slice(`${part}`.length) : text),
  ],
  [
    'removesuffix',
    (text, part) => (text.endsWith(`${part}`) ? text.slice(0, -`${part}`.length) : text),
  ],
  ['find', (text, part) => text.indexOf(String(part))],
  ['count', (text, part) => text.split(String(part)).length - 1],
  ['splitlines', (text) => text.replace(/\r?\n$/, '').split(/\r?\n/)],
])

function stripStart(text: string, set: unknown): string {
  if (typeof set !== 'string') return text.trimStart()
  let from = 0
  while (from < text.length && set.includes(text.charAt(from))) from += 1
  return text.slice(from)
}

function stripEnd(text: string, set: unknown): string {
  if (typeof set !== 'string') return text.trimEnd()
  let to = text.length
  while (to > 0 && set.includes(text.charAt(to - 1))) to -= 1
  return text.slice(0, to)
}

/** Returns Python's `repr` of a value. */
function repr({ value }: { value: unknown }): string {
  if (typeof value === 'string') return quote(value)
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (Array.isArray(value)) return `[${value.map((each: Value) => repr(each)).join(', ')}]`
  if (value instanceof Map) {
    const entries = [...(value as Map<string, Value>)]
    return `{${entries.map(([name, each]) => `${quote(name)}: ${repr(each)}`).join(', ')}}`
  }
  return value === null || value === undefined ? 'None' : String(value)
}

function quote(text: string): string {
  const sign = text.includes("'") && !text.includes('"') ? '"' : "'"
  const escapes = new Map([
    ['\n', '\\n'],
    ['\r', '\\r'],
    ['\t', '\\t'],
    ['\\', '\\\\'],
    [sign, `\\${sign}`],
  ])
  return sign + text.replace(/[\n\r\t\\'"]/g, (found) => escapes.get(found) ?? found) + sign
}

/**
 * Limits of one rendering. A real template uses a thousandth of each. `charactersForOne` characters
 * are added for each input character, and `charactersForMessage` for each message.
 */
const LIMITS = {
  milliseconds: 5_000,
  characters: 8 * 1024 * 1024,
  charactersForOne: 4,
  charactersForMessage: 256,
  items: 1_000_000,
}

/** A parsed template. */
type Program = Template['parsed']

/** Error of a template that rejects the conversation with `raise_exception`. */
export class TemplateRejection extends Error {}

/** Error of a template that exceeds a limit. */
export class LimitExceeded extends Error {}

/** Parses a template. Throws `model_unusable` if it is invalid. */
export function parseTemplateProgram(source: string): Program {
  try {
    return new Template(source).parsed
  } catch (cause) {
    throw modelUnusable(`its chat template cannot be read (${String(cause)}).`, cause)
  }
}

/**
 * Renders a template. `inputSize` is the number of characters and messages in the variables. Throws
 * {@link TemplateRejection} if the template rejects the conversation.
 */
export function renderTemplate(
  program: Program,
  variables: Readonly<Record<string, unknown>>,
  inputSize: { characters: number; messages: number },
): string {
  const environment = new Environment()
  for (const [name, value] of Object.entries({ ...globals, ...variables })) {
    environment.set(name, value)
  }
  const characters =
    LIMITS.characters +
    LIMITS.charactersForOne * inputSize.characters +
    LIMITS.charactersForMessage * inputSize.messages
  return String(new LimitedInterpreter(environment, characters).run(program).value)
}

type Evaluate = Interpreter['evaluate']
type Value = ReturnType<Evaluate>
type Method = (args: Value[], environment: Environment) => Value
type Node = NonNullable<Parameters<Evaluate>[0]>

/** Fields of the nodes that this file reads. */
interface Parts extends Node {
  operand: Node
  filter: Node & { value?: unknown }
  callee: Node
  args: Node[]
  iterable: Node & { lhs?: Node }
  left: Node
  right: Node
  object: Node
  property: Node & { value?: unknown }
  computed: boolean
  /** Value of a node that has been evaluated. */
  value: Value
}

/** Fields with lists of statements. The values of these statements become text. */
const BLOCKS = ['body', 'alternate', 'defaultBlock'] as const
type Blocks = Partial<Record<(typeof BLOCKS)[number], Node[]>>

/** Returns a node that already has its value. */
const evaluated = (value: Value) => ({ type: 'Evaluated', value })

/** Interpreter with limits. `evaluate` runs for every node, so it sees all work. */
class LimitedInterpreter extends Interpreter {
  readonly #deadline = performance.now() + LIMITS.milliseconds
  readonly #characters: number
  /** Nodes whose whole value may become text. */
  readonly #written = new WeakSet<Node>()
  /** Nodes that a loop iterates: text by character, an undefined value as an empty list. */
  readonly #iterables = new WeakSet<Node>()

  constructor(environment: Environment, characters: number) {
    super(environment)
    this.#characters = characters
  }

  override evaluate(...[node, environment]: Parameters<Evaluate>): Value {
    if (performance.now() > this.#deadline) throw new LimitExceeded('it runs for too long')
    const result = this.#evaluate(node, environment)
    const { value } = result
    if (typeof value === 'string' && value.length > this.#characters)
      throw new LimitExceeded('it produces too much text')
    if (Array.isArray(value) && value.length > LIMITS.items)
      throw new LimitExceeded('it creates too long a list')
    if (node && this.#written.has(node)) this.#assertTextSize(result)
    if (node && this.#iterables.has(node)) {
      if (typeof value === 'string') return toTemplateValue([...value])
      if (value === undefined) return toTemplateValue([])
    }
    return result
  }

  /** Throws if a value would become too much text. What a list has twice is written twice. */
  #assertTextSize(result: Value): void {
    let left = this.#characters
    const walk = ({ value }: Value): void => {
      left -= typeof value === 'string' ? 1 + value.length : 1
      if (left < 0) throw new LimitExceeded('it produces too much text')
      if (!Array.isArray(value) && !(value instanceof Map)) return
      for (const each of (value as Value[] | Map<string, Value>).values()) walk(each)
    }
    walk(result)
  }

  #evaluate(node: Node | undefined, environment: Environment): Value {
    const parts = node as Parts
    for (const name of BLOCKS) {
      const block = (node as Blocks | undefined)?.[name]
      if (Array.isArray(block)) for (const each of block) this.#written.add(each)
    }
    switch (node?.type) {
      case 'Evaluated':
        return parts.value
      case 'For':
        this.#iterables.add(parts.iterable.lhs ?? parts.iterable)
        break
      case 'BinaryExpression':
        this.#written.add(parts.left).add(parts.right)
        break
      case 'FilterExpression': {
        this.#written.add(parts.operand)
        const operand = this.evaluate(parts.operand, environment)
        const name = parts.filter.type === 'Identifier' ? String(parts.filter.value) : ''
        if (operand.type === 'UndefinedValue' && EMPTY.has(name))
          return toTemplateValue(EMPTY.get(name))
        if (name === 'string' && typeof operand.value === 'object')
          return toTemplateValue(repr(operand))
        return super.evaluate({ ...node, operand: evaluated(operand) } as Node, environment)
      }
      case 'MemberExpression': {
        const { computed, property } = parts
        if (!computed || property.type === 'SliceExpression') break
        const key = this.evaluate(property, environment)
        if (key.type === 'UndefinedValue') return key
        return super.evaluate({ ...node, property: evaluated(key) } as Node, environment)
      }
      case 'CallExpression':
        for (const argument of parts.args) this.#written.add(argument)
        if (parts.callee.type === 'MemberExpression') return this.#call(parts, environment)
    }
    return super.evaluate(node, environment)
  }

  /** Calls a method. As in Python, methods take precedence over the entries of a mapping. */
  #call(node: Parts, environment: Environment): Value {
    const callee = node.callee as Parts
    const object = this.evaluate(callee.object, environment)
    const name = callee.computed ? '' : String(callee.property.value)
    const method = node.args.some(({ type }) => /Keyword|Spread/.test(type))
      ? undefined
      : findMethod(object, name)
    if (method) {
      const args = node.args.map((argument) => this.evaluate(argument, environment))
      return method(args, environment)
    }
    const evaluatedCallee = { ...callee, object: evaluated(object) }
    return super.evaluate({ ...node, callee: evaluatedCallee } as Node, environment)
  }
}

/** Returns a method of a value, or `undefined` if there is none. */
function findMethod(object: Value, name: string): Method | undefined {
  if (object.type === 'StringValue') {
    const method = METHODS.get(name)
    return method && ((args) => toTemplateValue(method(object.value as string, args[0]?.value)))
  }
  const own = object.type === 'ObjectValue' ? object.builtins.get(name) : undefined
  return own?.type === 'FunctionValue' ? (own.value as Method) : undefined
}

const scratch = new Environment()

/** Converts a JavaScript value into a value of the interpreter. */
function toTemplateValue(value: unknown): Value {
  scratch.variables.delete('value')
  return scratch.set('value', value)
}

const globals = {
  true: true,
  True: true,
  false: false,
  False: false,
  none: null,
  None: null,
  raise_exception: (message: unknown) => {
    throw new TemplateRejection(String(message))
  },
  range: (first: number, stop?: number, step = 1) => {
    const [start, end] = stop === undefined ? [0, first] : [first, stop]
    const length = Math.max(0, Math.ceil((end - start) / step))
    if (!(length <= LIMITS.items)) throw new LimitExceeded('it creates too long a list')
    return Array.from({ length }, (_, index) => start + index * step)
  },
  strftime_now: (format: string) => strftime(new Date(), format),
}

/** Formats a date like Python's `strftime`, with English names, as in the training data. */
function strftime(date: Date, format: string): string {
  const name = (options: Intl.DateTimeFormatOptions): string =>
    date.toLocaleDateString('en', options)
  const pad = (value: number): string => String(value).padStart(2, '0')
  const hours = date.getHours()
  const parts: Record<string, string> = {
    Y: String(date.getFullYear()),
    y: pad(date.getFullYear() % 100),
    m: pad(date.getMonth() + 1),
    d: pad(date.getDate()),
    B: name({ month: 'long' }),
    b: name({ month: 'short' }),
    A: name({ weekday: 'long' }),
    a: name({ weekday: 'short' }),
    H: pad(hours),
    I: pad(hours % 12 || 12),
    p: hours < 12 ? 'AM' : 'PM',
    M: pad(date.getMinutes()),
    S: pad(date.getSeconds()),
    '%': '%',
  }
  return format.replace(/%(-?)([a-zA-Z%])/g, (token, dash: string, letter: string) => {
    const text = parts[letter] ?? token
    return dash === '' || text === token ? text : text.replace(/^0/, '')
  })
}
