/**
 * Tools of responses. A model calls functions and custom tools, also those of a namespace. Tools of
 * all other types run on a vendor's servers, so they are left out and named.
 */
import type * as v from 'valibot'
import type { Tool, ToolUse } from '../types/index.ts'
import { shorten } from '../values/text.ts'
import { invalidRequest } from './errors.ts'
import * as f from './fields.ts'
import * as calls from './tools.ts'

type RawObject = Readonly<Record<string, unknown>>

const OWN_TYPES: ReadonlySet<unknown> = new Set(['function', 'custom', 'namespace'])

/** Returns `true` for the type of a tool that no model here can call. */
const isHosted = (type: unknown): boolean =>
  typeof type === 'string' && type !== '' && !OWN_TYPES.has(type)

const ownTool = calls.customOr(
  f.object({ type: f.oneOf(['custom']), ...calls.responsesCustomFields }),
  f.object({ type: f.oneOf(['function']), ...calls.functionFields }),
)

const namespaceTool = f.object({
  type: f.oneOf(['namespace']),
  name: f.nonEmptyString,
  description: f.optional(f.string),
  tools: f.arrayOf(f.typeOr(isHosted, f.anyObject, ownTool)),
})

/** Accepts the tools of a response, of any type. */
export const toolsSchema = f.arrayOf(
  f.typeOr((type) => type === 'namespace', namespaceTool, f.typeOr(isHosted, f.anyObject, ownTool)),
)

/** A tool of a response as it was sent. */
export type ResponsesTool = v.InferOutput<typeof toolsSchema>[number]
type OwnTool = v.InferOutput<typeof ownTool>
type NamespaceTool = v.InferOutput<typeof namespaceTool>

const isNamespace = (tool: ResponsesTool): tool is NamespaceTool => tool.type === 'namespace'
const isOwn = (tool: ResponsesTool): tool is OwnTool =>
  tool.type === 'function' || tool.type === 'custom'

const NAMESPACE_SEPARATOR = '__'

/** Returns the name by which a model calls a tool: `crm__find` for `find` in the namespace `crm`. */
export function toFullName({ namespace, name }: CalledName): string {
  if (!namespace) return name
  const prefix = namespace.endsWith(NAMESPACE_SEPARATOR)
    ? namespace
    : namespace + NAMESPACE_SEPARATOR
  return name.startsWith(prefix) ? name : prefix + name
}

/** Name of a tool as clients know it, and its namespace if it has one. */
export interface CalledName {
  name: string
  namespace?: string | null | undefined
}

/** A tool that a model may call. */
interface FlatTool extends CalledName {
  tool: Tool
  /** Path of its definition in the body, such as `tools[0].tools[1]`. */
  path: string
}

/** Returns the tools that a model may call, and what is left out: paths with types. */
export function flattenTools(tools: readonly ResponsesTool[], path: string) {
  const flat: FlatTool[] = []
  const omitted: string[] = []
  const add = (tool: ResponsesTool, at: string, namespace?: NamespaceTool): void => {
    if (isNamespace(tool)) {
      tool.tools.forEach((each, index) => add(each, `${at}.tools[${index}]`, tool))
    } else if (isOwn(tool)) {
      const own = tool.type === 'function' ? calls.toTool(tool) : calls.toCustomTool(tool)
      const called = { name: tool.name, ...(namespace && { namespace: namespace.name }) }
      flat.push({ ...called, tool: { ...own, name: toFullName(called) }, path: at })
    } else omitted.push(`${at}:${String(tool['type'])}`)
  }
  tools.forEach((tool, index) => add(tool, `${path}[${index}]`))
  return { flat, omitted }
}

/** Returns the names of tools as clients know them, by the names by which a model calls them. */
export const namesOfTools = (
  tools: readonly ResponsesTool[] | null | undefined,
): ReadonlyMap<string, CalledName> =>
  new Map(
    flattenTools(tools ?? [], 'tools').flat.map(({ tool, name, namespace }) => [
      tool.name,
      { name, ...(namespace && { namespace }) },
    ]),
  )

const named = { name: f.nonEmptyString, namespace: f.optional(f.string) }
const reference = f.object({
  type: f.optional(f.oneOf(['function', 'custom', 'namespace'])),
  ...named,
})

/** Accepts the tool choice of responses, whose objects have no inner ones. */
export const responsesToolChoice = calls.choiceOf({
  function: named,
  allowed_tools: {
    mode: calls.mode,
    tools: f.arrayOf(f.typeOr(isHosted, f.anyObject, reference)),
  },
  custom: named,
})

type ToolChoice = v.InferOutput<typeof responsesToolChoice>

/** Fields of a body that say how its tools may be called. */
interface ToolFields {
  tool_choice?: ToolChoice
  parallel_tool_calls?: boolean | null | undefined
}

/** Returns the tool settings of a body, and the references to tools that are left out. */
export function toResponsesToolUse(flat: readonly FlatTool[], body: ToolFields) {
  const { tool_choice: sent, parallel_tool_calls } = body
  const tools = flat.map(({ tool }) => tool)
  const omitted: string[] = []
  const toUse = (tool_choice: calls.ToolFields['tool_choice']): ToolUse | undefined =>
    calls.toToolUse(tools, { tool_choice, parallel_tool_calls })
  if (typeof sent !== 'object' || sent === null) return { use: toUse(sent), omitted }
  if (sent.type !== 'allowed_tools')
    return { use: toUse({ type: sent.type, name: toFullName(sent) }), omitted }
  const only = sent.tools.flatMap((each, index) => {
    if (!isReference(each)) {
      omitted.push(`tool_choice.tools[${index}]:${String(each['type'])}`)
      return []
    }
    if (each.type !== 'namespace') return [{ name: toFullName(each) }]
    const inside = flat.filter(({ namespace }) => namespace === each.name)
    return inside.map(({ tool }) => ({ name: tool.name }))
  })
  return { use: toUse({ type: 'allowed_tools', mode: sent.mode, tools: only }), omitted }
}

const isReference = (
  each: v.InferOutput<typeof reference> | RawObject,
): each is v.InferOutput<typeof reference> => !isHosted(each['type'])

/**
 * Throws `invalid_request` if an item from `from` on is the result of a call that no item before it
 * has. `items` are a whole conversation, as it was sent. After a compaction any call may be missing.
 */
export function assertCallsExist(items: readonly RawObject[], from: number): void {
  const ids = new Set<unknown>()
  for (const [index, { type, call_id }] of items.entries()) {
    if (type === 'compaction') return
    const kind = String(type)
    if (!kind.endsWith('_output')) ids.add(call_id)
    else if (index >= from && typeof call_id === 'string' && !ids.has(call_id)) {
      const param = `input[${index - from}].call_id`
      const what = `\`${param}\` is ${JSON.stringify(shorten(call_id))}, but no call before it has this id.`
      throw invalidRequest(
        `${what} Send the output of a call of this conversation.`,
        'invalid_value',
        param,
      )
    }
  }
}
