/** What the families of models have in common that write calls of tools as text. */
import type { Constraint, TaggedConstraint } from '../../engine/constraint.ts'
import type { Tool, ToolCall, ToolUse } from '../../types/index.ts'
import type { Reading, Source } from './reading.ts'

/** Where a reader tells what it finds. */
export interface Sink {
  /** The tool of that name, if it may be called. */
  tool(name: string): Tool | undefined
  call(tool: Tool): void
  /** More of the JSON text of the call's arguments. */
  args(json: string): void
  /** The call is over; what was read so far is not looked at again. */
  done(): void
}

export interface ToolFormat {
  readonly name: string
  /** Whether a chat template tells the model to write calls like this. */
  detect(template: string): boolean
  /** Texts that may be special tokens and have to be told all the same. */
  readonly markers: readonly string[]
  /** Texts with which calls begin. */
  readonly triggers: readonly string[]
  /** Calls are the whole answer: a trigger behind other text is text. */
  readonly alone?: boolean
  /** Calls, and nothing else. */
  forced(tools: readonly Tool[], parallel: boolean): Constraint
  /** Text, calls, or text and then calls. */
  free(tools: readonly Tool[], parallel: boolean): Constraint
  /**
   * Reads what follows a trigger; false where that is not a call, or not whole. A call that was told
   * is over then.
   */
  read(source: Source, sink: Sink, trigger: string): Reading<boolean>
  /** Calls as the model would have written them. */
  write(calls: readonly ToolCall[]): string
}

/** What an answer may be where these tools may be called. */
export function toolConstraint(format: ToolFormat, use: ToolUse): Constraint {
  const tools = callable(use)
  return format[use.choice === 'required' ? 'forced' : 'free'](tools, use.parallel)
}

/** The tools that may be called; that their arguments are objects is said by their schemas. */
export function callable({ tools, only }: ToolUse): readonly Tool[] {
  const names = only && new Set(only)
  return (names ? tools.filter(({ name }) => names.has(name)) : tools).map(withObject)
}

function withObject(tool: Tool): Tool {
  const { parameters } = tool
  if (parameters === false || (parameters !== true && parameters['type'] === 'object')) return tool
  return {
    ...tool,
    parameters: parameters === true ? { type: 'object' } : { ...parameters, type: 'object' },
  }
}

/** How calls stand beside each other: within one beginning and one end. */
export interface Frame {
  trigger: string
  /** What stands between the trigger and the first call. */
  lead: Constraint
  separator: string
  close: string
}

/** The constraints of a format that writes its calls in a frame. */
export function framed(
  { trigger, lead, separator, close }: Frame,
  tag: (tool: Tool) => TaggedConstraint,
): Pick<ToolFormat, 'forced' | 'free'> {
  const frame = (tools: readonly Tool[], parallel: boolean): TaggedConstraint => ({
    type: 'tagged',
    begin: trigger,
    content: sequence(lead, {
      type: 'separated',
      tags: tools.map(tag),
      separator,
      required: true,
      single: !parallel,
    }),
    end: close,
  })
  return {
    forced: frame,
    free: (tools, parallel) => ({
      type: 'triggered',
      triggers: [trigger],
      tags: [frame(tools, parallel)],
      required: false,
      single: true,
    }),
  }
}

export const constant = (text: string): Constraint => ({ type: 'constant', text })

export const sequence = (...parts: readonly Constraint[]): Constraint => ({
  type: 'sequence',
  parts,
})

/** A call as a JSON object. */
export const jsonTag =
  (key: 'arguments' | 'parameters') =>
  (tool: Tool): TaggedConstraint => ({
    type: 'tagged',
    begin: `{"name": ${JSON.stringify(tool.name)}, "${key}": `,
    content: { type: 'json', schema: tool.parameters },
    end: '}',
  })

/** A call as a JSON object, as {@link jsonTag} has it. */
export const writeJson =
  (key: 'arguments' | 'parameters') =>
  (call: ToolCall): string =>
    `{"name": ${JSON.stringify(call.name)}, "${key}": ${call.arguments}}`
