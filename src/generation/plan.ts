/**
 * Prepares a request for an engine, and rejects it if it cannot be answered. Everything here runs
 * before the weights are loaded.
 */
import type { Constraint } from '../constraint/index.ts'
import type { Conversation, Engine, Prompt } from '../engine/engine.ts'
import type { ImageDetail } from '../engine/images.ts'
import { templateTraits } from '../engine/text/template-traits.ts'
import { hasToolCalls, writeCalls } from '../engine/text/template-variables.ts'
import { InoriginError } from '../error.ts'
import type { AnswerFormat, ChatMessage, GenerationRequest, Tool, ToolUse } from '../types/index.ts'
import { parametersOf } from '../values/custom-tools.ts'
import { shorten } from '../values/text.ts'
import { explainTooLong } from './context-limit.ts'
import { describeImages, type ImageOptions } from './images.ts'
import {
  closingText,
  detectReasoningTags,
  detectTextFrame,
  findReasoningState,
  hasReasoningSwitch,
  type ReasoningTags,
  type TextFrame,
  tokensOf,
} from './reasoning.ts'
import { findUnread, readsThinking, toTemplateSwitches } from './template-switches.ts'
import {
  callableTools,
  detectFormat,
  FORMATS,
  hermes,
  larkOf,
  toolConstraint,
  type ToolFormat,
} from './tools/index.ts'

/** Properties of a model that its catalog entry states because its chat template does not. */
export interface ModelTraits {
  /** Name of the tool format that the model uses. Default: detected from the chat template. */
  toolFormat?: string
  /** `false` if the model does not reason. Otherwise, its chat template decides. */
  reasons?: boolean
  /** Detail of images that request none. Default: `low`. */
  imageDetail?: ImageDetail | undefined
}

export interface GenerationPlan {
  prompt: Prompt
  /** Constraint of the whole answer, reasoning included. */
  constraint: Constraint | null
  /** Number of characters with which the constraint begins every answer. */
  forcedCharacters: number
  /** `true` if the constraint fixes only those characters, so that it can be lifted after them. */
  removesConstraint: boolean
  /** Special tokens that must appear in the engine's text. */
  visible: readonly string[]
  /** Tools whose calls are parsed from the answer; `null` if none can be called. */
  tools: {
    format: ToolFormat
    callable: readonly Tool[]
    parallel: boolean
    /** Text that the prompt ends with and with which a call may begin. */
    opening: string
  } | null
  /** What of the schemas the constraint does not keep, each keyword once. */
  loosened: readonly string[]
  /** Fields of the request that the chat template does not read. */
  unread: readonly string[]
  /** Reasoning that is split off from the answer, and marks of its text; `null` if it has none. */
  reasoning: {
    tags: ReasoningTags | null
    frame: TextFrame | null
    /** What the prompt has already opened. */
    opened: 'reasoning' | 'text' | 'nothing'
    budget: number
  } | null
}

/**
 * Applies the chat template, tokenizes the prompt, and checks the constraint of the answer. Rejects
 * with `invalid_request` if the conversation does not fit, the engine does not accept its images, a
 * tool is unknown, or a schema or grammar is not supported. The same holds for a required call with
 * a prefilled answer. A prefilled answer with a format must have it as a whole. `param` names the field as in {@link GenerationRequest}.
 */
export async function planGeneration(
  engine: Engine,
  request: GenerationRequest,
  traits: ModelTraits = {},
  { contexts, ...imageOptions }: Omit<ImageOptions, 'detail'> & { contexts?: number } = {},
): Promise<GenerationPlan> {
  const { template } = engine
  const { tools: use, format: answerFormat, reasoningBudget } = request
  const { imageDetail: detail } = traits
  const images = await describeImages(engine, request, { ...imageOptions, detail })
  if (use) assertValidTools(use)
  if (request.responsePrefix) assertNoRequiredCall(request)

  const hasTools = use !== undefined && use.choice !== 'none' && use.tools.length > 0
  const rendering = chooseToolRendering(template, traits, hasTools)
  const detected = traits.reasons === false ? null : detectReasoningTags(template)
  const frame = detectTextFrame(template)
  // Reasoning comes before an answer, so a prefilled answer has none.
  const tags = request.responsePrefix ? null : detected
  // The template decides what it writes before a prefilled answer.
  const canSwitch = detected !== null || (traits.reasons !== false && readsThinking(template))
  const isSwitched = canSwitch && reasoningBudget !== undefined && !request.responsePrefix
  const thinking = isSwitched ? reasoningBudget > 0 : undefined
  const variables = toTemplateSwitches(request, template)
  const converse = (one: GenerationRequest): Conversation => ({
    ...createConversation(one, rendering, thinking),
    ...(Object.keys(variables).length > 0 && { variables }),
    ...(images.size > 0 && { images }),
  })
  let prompt: Prompt
  try {
    prompt = preparePrompt(engine, converse(request), detected, contexts)
  } catch (error) {
    const count = (one: GenerationRequest) => engine.prepare(converse(one), Infinity).tokens.length
    throw explainTooLong(error, request, count)
  }
  // Calls that must be the whole answer cannot follow a prefilled beginning.
  const excludesCalls = request.responsePrefix && rendering.format.isExclusive
  const offered = hasTools && !excludesCalls ? { format: rendering.format, use } : null
  const describedOnly = offered && !offered.format.writesPlainText ? larkPaths(offered.use) : []
  const opening = frame?.opening && prompt.opening.endsWith(frame.opening) ? frame.opening : ''
  const whole = completionConstraint(offered, answerFormat, request.responsePrefix ? null : frame)
  const written = opening || (answerFormat && request.responsePrefix)
  const completion: Constraint | null =
    whole && written ? { type: 'rest', text: written, whole } : whole
  let prefix = toReasoningPrefix(prompt, tags, hasReasoningSwitch(template), reasoningBudget)
  const constraint = withReasoningPrefix(prefix, completion)
  let loosened: readonly string[] = []
  if (completion && constraint) loosened = await checkConstraint(engine, constraint, request)
  else if (constraint) {
    // If the block cannot be forced, the reasoning is closed when the model opens it.
    await engine.check(constraint).catch(() => (prefix = { type: 'nothing' }))
  }
  return {
    prompt,
    constraint: withReasoningPrefix(prefix, completion),
    forcedCharacters: prefix.type === 'block' ? prefix.text.length : 0,
    removesConstraint: prefix.type === 'block' && !completion,
    loosened: [...loosened, ...describedOnly],
    unread: findUnread(request, template),
    visible: [
      ...tokensOf([...(tags ? [tags.open, tags.close] : []), ...(frame ? listMarks(frame) : [])]),
      ...(offered ? offered.format.markers : []),
    ],
    tools: offered && {
      format: offered.format,
      callable: callableTools(offered.use),
      parallel: offered.use.parallel,
      opening,
    },
    reasoning: (tags ?? frame) && {
      tags,
      frame,
      opened: request.responsePrefix ? 'text' : findOpened(prompt, tags),
      // A requested budget leaves half of the context to the answer.
      budget:
        reasoningBudget === undefined
          ? Infinity
          : Math.min(reasoningBudget, Math.floor(engine.contextWindow / 2)),
    },
  }
}

const listMarks = ({ begin, end, next = '' }: TextFrame): string[] => [...begin, ...end, next]

const findOpened = ({ opening }: Prompt, tags: ReasoningTags | null): 'reasoning' | 'nothing' =>
  tags && findReasoningState(opening, tags) === 'open' ? 'reasoning' : 'nothing'

/** Returns the prompt. If it ends with the beginning of the answer, reasoning before it is closed. */
function preparePrompt(
  engine: Engine,
  conversation: Conversation,
  tags: ReasoningTags | null,
  contexts: number | undefined,
): Prompt {
  const prompt = engine.prepare(conversation, contexts)
  const { responsePrefix } = conversation
  if (!responsePrefix || !tags || findReasoningState(prompt.opening, tags) !== 'open') return prompt
  const block = closingText(tags)
  return engine.prepare({ ...conversation, responsePrefix: { ...responsePrefix, block } }, contexts)
}

/** Throws if the request needs a call, which a prefilled answer cannot begin with. */
function assertNoRequiredCall({ tools }: GenerationRequest): void {
  if (tools?.choice !== 'required') return
  throw new InoriginError(
    'invalid_request',
    'tool_choice cannot be combined with a prefilled assistant message. Remove one of them.',
    { param: 'tool_choice' },
  )
}

/** Returns the paths of Lark grammars, which a JSON string cannot keep. The prompt describes them. */
const larkPaths = ({ tools }: ToolUse): string[] =>
  tools.flatMap((tool, index) =>
    larkOf(tool) === null ? [] : [`tools[${index}].input.definition`],
  )

/** Chooses the writer of tools, calls and results. `hasTools` is `true` if tools are offered. */
function chooseToolRendering(
  template: string | null,
  { toolFormat }: ModelTraits,
  hasTools: boolean,
): ToolRendering {
  const wanted = FORMATS.find(({ name }) => name === toolFormat)
  if (toolFormat !== undefined && !wanted) {
    const names = FORMATS.map(({ name }) => name).join(', ')
    throw new InoriginError(
      'unavailable',
      `Unknown tool format "${toolFormat}" in the model's catalog entry. Expected: ${names}.`,
    )
  }
  if (template === null)
    return { format: wanted ?? hermes, tools: false, calls: 'nobody', results: false }
  const traits = templateTraits(template)
  const { calls, results } = hasTools && traits.tools ? traits.withTools : traits.withoutTools
  return {
    format: wanted ?? detectFormat(template) ?? hermes,
    tools: traits.tools,
    calls: calls ? 'template' : 'engine',
    results,
  }
}

function toReasoningPrefix(
  { opening }: Prompt,
  tags: ReasoningTags | null,
  isSwitched: boolean,
  budget: number | undefined,
): ReasoningPrefix {
  if (!tags) return { type: 'nothing' }
  const state = findReasoningState(opening, tags)
  if (budget !== 0) return { type: state === 'open' ? 'open' : 'free', tags }
  if (state === 'open') return { type: 'block', text: closingText(tags) }
  if (state === 'closed' || isSwitched) return { type: 'nothing' }
  const space = tags.next === undefined ? '\n' : ''
  return { type: 'block', text: `${tags.open}${space}${closingText(tags)}` }
}

const TOOL_NAME = /^[\w.:/-]{1,128}$/
const TOOL_NAME_RULE = '1 to 128 characters of A-Z, a-z, 0-9, "_", "-", ".", ":" and "/"'

function assertValidTools({ tools, only, choice }: ToolUse): void {
  const refuse = (message: string, param: string): InoriginError =>
    new InoriginError('invalid_request', message, { param })
  const names = new Set<string>()
  tools.forEach(({ name, parameters }, index) => {
    const shown = `"${shorten(name)}"`
    const place = `tools[${index}].name`
    const type = typeof parameters === 'object' ? (parameters['type'] ?? undefined) : undefined
    if (parameters === false || (type !== undefined && ![type].flat().includes('object'))) {
      const path = `tools[${index}].parameters`
      throw refuse(`\`${path}\` of the tool ${shown} must be the schema of an object.`, path)
    }
    if (!TOOL_NAME.test(name))
      throw refuse(`\`${place}\` must be ${TOOL_NAME_RULE}, not ${shown}.`, place)
    if (names.has(name)) {
      const what = `\`${place}\` is ${shown}, which is the name of an earlier tool.`
      throw refuse(`${what} Give each tool another name.`, place)
    }
    names.add(name)
  })
  if (choice === 'none') return
  const unknown = only?.find((name) => !names.has(name))
  if (unknown !== undefined) {
    const what = `tool_choice names "${shorten(unknown)}", which is not one of the tools.`
    throw refuse(`${what} Name one of them: ${shorten([...names].join(', '))}.`, 'tool_choice')
  }
  if (choice === 'required' && (only?.length ?? names.size) === 0) {
    throw refuse('tool_choice requires a call, but no tool can be called.', 'tool_choice')
  }
}

/**
 * Resolves with the keywords of schemas that are not kept. Rejects with `invalid_request` if the
 * constraint is not supported. The error names the schema, or else what the constraint is made of.
 */
async function checkConstraint(
  engine: Engine,
  constraint: Constraint,
  { tools, format }: GenerationRequest,
): Promise<readonly string[]> {
  try {
    return await engine.check(constraint)
  } catch (thrown) {
    if (!(thrown instanceof InoriginError) || thrown.kind !== 'invalid_request') throw thrown
    if (thrown.param) throw thrown
    const { kind, message, code, details } = thrown
    const param = format || !tools ? 'format' : 'tools'
    throw new InoriginError(kind, message, { code, details, param, cause: thrown })
  }
}

/** Way in which tools and calls appear in the prompt. */
interface ToolRendering {
  format: ToolFormat
  /** `true` if the chat template writes the tools. */
  tools: boolean
  /**
   * Writer of the calls in past answers: the chat template, the engine through the format's
   * `write`, or nobody. Without a writer, calls become plain text here.
   */
  calls: 'template' | 'engine' | 'nobody'
  /** `true` if the chat template writes messages of the role `tool`. */
  results: boolean
}

/** Maximum length in characters of a schema in the prompt. Longer ones cost more than they help. */
const MAX_PROMPT_SCHEMA_CHARACTERS = 2_000

/** Creates the conversation. What the chat template does not write of tools becomes plain text. */
function createConversation(
  { messages: requestMessages, tools: use, format, responsePrefix }: GenerationRequest,
  rendering: ToolRendering,
  thinking: boolean | undefined,
): Conversation {
  const offered =
    use && use.choice !== 'none'
      ? use.tools.map((tool) => ({ ...tool, parameters: parametersOf(tool) }))
      : []
  const marked = requestMessages.map(markError)
  const results = rendering.results ? marked : inlineResults(marked)
  const messages = rendering.calls === 'nobody' ? inlineCalls(results, rendering.format) : results
  const instructions = [
    ...(offered.length > 0 && !rendering.tools ? [describeTools(offered, rendering.format)] : []),
    ...(format ? describeFormat(format, requestMessages) : []),
  ]
  return {
    messages: instructions.length > 0 ? addToSystem(messages, instructions.join('\n\n')) : messages,
    ...(offered.length > 0 && rendering.tools && { tools: offered }),
    ...(rendering.calls === 'engine' &&
      hasToolCalls(requestMessages) && { serializeCalls: rendering.format.write }),
    ...(thinking !== undefined && { thinking }),
    ...(responsePrefix && { responsePrefix: { text: responsePrefix } }),
  }
}

/** Marks the result of a failed call as an error, since templates have no field for it. */
const markError = (message: ChatMessage): ChatMessage =>
  message.role === 'tool' && message.isError && !/^error\b/i.test(message.content)
    ? { ...message, content: `Error: ${message.content}` }
    : message

/** Converts results of calls into user messages. Consecutive results share one message. */
function inlineResults(messages: readonly ChatMessage[]): ChatMessage[] {
  const inlined: ChatMessage[] = []
  for (const [index, message] of messages.entries()) {
    if (message.role !== 'tool') {
      inlined.push(message)
      continue
    }
    const content = `<tool_response>\n${message.content}\n</tool_response>`
    const previous = messages[index - 1]?.role === 'tool' ? inlined.pop() : undefined
    inlined.push({ role: 'user', content: previous ? `${previous.content}\n${content}` : content })
  }
  return inlined
}

/** Converts calls into text of the assistant. */
const inlineCalls = (messages: readonly ChatMessage[], format: ToolFormat): ChatMessage[] =>
  messages.map((message) => {
    if (message.role !== 'assistant' || !message.toolCalls?.length) return message
    const { toolCalls, ...withoutCalls } = message
    const parts = [withoutCalls.content, writeCalls(format.write, toolCalls)]
    return { ...withoutCalls, content: parts.filter((part) => part !== '').join('\n') }
  })

function describeTools(tools: readonly Tool[], format: ToolFormat): string {
  const example = { id: '', name: 'the_name', arguments: '{"argument": "value"}' }
  return [
    '# Tools',
    'You may call these functions:',
    ...tools.map(({ name, description, parameters }) =>
      JSON.stringify({ name, description, parameters }),
    ),
    'To call one, answer with:',
    format.write([example]),
  ].join('\n')
}

/** Describes the format in the prompt. With a constraint alone, models ramble within its limits. */
function describeFormat(format: AnswerFormat, messages: readonly ChatMessage[]): string[] {
  if (format.type === 'json_object') {
    const mentionsJson = messages.some(({ content }) => /json/i.test(content))
    return mentionsJson ? [] : ['Answer with a JSON object.']
  }
  if (format.type !== 'json_schema') return []
  const schema = JSON.stringify(format.schema)
  if (schema.length > MAX_PROMPT_SCHEMA_CHARACTERS) return ['Answer in JSON.']
  return [`Answer in JSON, by this schema: ${schema}`]
}

function addToSystem(messages: readonly ChatMessage[], text: string): ChatMessage[] {
  const [first, ...rest] = messages
  if (first?.role !== 'system') return [{ role: 'system', content: text }, ...messages]
  const content = first.content === '' ? text : `${first.content}\n\n${text}`
  return [{ ...first, content }, ...rest]
}

/** Text that the model writes before its answer. */
export type ReasoningPrefix =
  /** No text: the model answers at once. */
  | { type: 'nothing' }
  /** A fixed text that the model is forced to write. */
  | { type: 'block'; text: string }
  /** Reasoning that the prompt has already opened. */
  | { type: 'open'; tags: ReasoningTags }
  /** Reasoning that the model may write or omit. */
  | { type: 'free'; tags: ReasoningTags }

/**
 * Returns the constraint of an answer after its reasoning; `null` if any text is valid. A format
 * applies to the text of an answer that calls no tool, after the mark of `frame`.
 */
export function completionConstraint(
  tools: { format: ToolFormat; use: ToolUse } | null,
  format: AnswerFormat | undefined,
  frame: TextFrame | null = null,
): Constraint | null {
  const content = format ? formatConstraint(format) : null
  const formatOnly: Constraint | null =
    content && frame
      ? { type: 'sequence', parts: [{ type: 'constant', text: frame.begin[0] }, content] }
      : content
  if (!tools || callableTools(tools.use).length === 0) return formatOnly
  const calls = toolConstraint(tools.format, { ...tools.use, choice: 'required' })
  if (tools.use.choice === 'required') return calls
  if (!formatOnly && frame && frame.end.length > 0) return framedTextOrCalls(frame, calls)
  if (!formatOnly) return toolConstraint(tools.format, tools.use)
  return {
    type: 'choice',
    parts: [calls, calls.type === 'tagged' ? formatOnly : toOpenEnded(formatOnly)],
  }
}

/** Returns the constraint of calls, text, or text and then calls, with the marks of text. */
function framedTextOrCalls({ begin, end, next }: TextFrame, calls: Constraint): Constraint {
  const constant = (text: string): Constraint => ({ type: 'constant', text })
  const content: Constraint = { type: 'text' }
  // Special tokens stand in no free text, so that each mark has a place of its own.
  const texts = begin.map((mark): Constraint => {
    return { type: 'sequence', parts: [constant(mark), content] }
  })
  const [text = content] = texts
  const ended = begin.flatMap((mark): Constraint[] => {
    const [close = ''] = end
    const tag: Constraint = { type: 'tagged', begin: mark, content, end: close }
    if (next === undefined) return [tag]
    const more: Constraint = { type: 'choice', parts: [calls, text] }
    return [tag, { type: 'sequence', parts: [tag, constant(next), more] }]
  })
  return { type: 'choice', parts: [calls, ...texts, ...ended] }
}

/**
 * Wraps a constraint in an open-ended one. A choice cannot mix open-ended and closed parts, and
 * calls without a frame are open-ended.
 */
const toOpenEnded = (part: Constraint): Constraint => ({
  type: 'separated',
  tags: [{ type: 'tagged', begin: '', content: part, end: '' }],
  separator: '\n',
  required: true,
  single: true,
})

function formatConstraint(format: AnswerFormat): Constraint {
  switch (format.type) {
    case 'json_object':
      return { type: 'json', schema: { type: 'object' } }
    case 'json_schema': {
      const { schema, strict } = format
      return { type: 'json', schema, ...(strict && { strict }), path: 'format.schema' }
    }
    case 'regex':
      return { ...format, type: 'pattern' }
    case 'choice':
      return { type: 'choice', parts: format.choices.map((text) => ({ type: 'constant', text })) }
    case 'grammar':
      return format
  }
}

/** Returns the constraint of an answer and the text before it; `null` if any text is valid. */
export function withReasoningPrefix(
  prefix: ReasoningPrefix,
  completion: Constraint | null,
): Constraint | null {
  if (prefix.type === 'block') {
    const text: Constraint = { type: 'constant', text: prefix.text }
    return { type: 'sequence', parts: [text, completion ?? { type: 'text' }] }
  }
  if (!completion || prefix.type === 'nothing') return completion
  const { open, close, next } = prefix.tags
  const begin = prefix.type === 'open' ? '' : open
  const withReasoning: Constraint = {
    type: 'sequence',
    parts: [
      { type: 'tagged', begin, content: { type: 'text' }, end: close },
      next === undefined
        ? { type: 'pattern', pattern: '\\n{0,2}' }
        : { type: 'constant', text: next },
      completion,
    ],
  }
  return prefix.type === 'open'
    ? withReasoning
    : { type: 'choice', parts: [withReasoning, completion] }
}
