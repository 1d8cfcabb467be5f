/**
 * Prepares a request for an engine, and rejects it if it cannot be answered. Everything here runs
 * before the weights are loaded.
 */
import type { Constraint } from '../constraint/index.ts'
import type { Conversation, Engine, Prompt } from '../engine/engine.ts'
import type { ImageDetail } from '../engine/images.ts'
import { InoriginError } from '../error.ts'
import type { GenerationRequest, Tool, ToolUse } from '../types/index.ts'
import { completionConstraint, type ReasoningPrefix, withReasoningPrefix } from './constraint.ts'
import { describeImages, type ImageOptions } from './images.ts'
import { createConversation, rendersCalls, rendersTools, type ToolRendering } from './prompt.ts'
import {
  detectReasoningTags,
  findReasoningState,
  hasReasoningSwitch,
  type ReasoningTags,
} from './reasoning.ts'
import { hermes } from './tools/hermes.ts'
import { callableTools, detectFormat, FORMATS, larkOf, type ToolFormat } from './tools/index.ts'

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
  tools: { format: ToolFormat; callable: readonly Tool[]; parallel: boolean } | null
  /** What of the schemas the constraint does not keep, each keyword once. */
  loosened: readonly string[]
  /** Reasoning that is split off from the answer; `null` if there is none. */
  reasoning: { tags: ReasoningTags; isOpen: boolean; budget: number } | null
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
  imageOptions: Omit<ImageOptions, 'detail'> = {},
): Promise<GenerationPlan> {
  const { template } = engine
  const { tools: use, format: answerFormat, reasoningBudget } = request
  const { imageDetail: detail } = traits
  const images = await describeImages(engine, request, { ...imageOptions, detail })
  if (use) assertValidTools(use)
  if (request.responsePrefix) assertNoRequiredCall(request)

  const rendering = chooseToolRendering(template, traits)
  const detected = traits.reasons === false ? null : detectReasoningTags(template)
  // Reasoning comes before an answer, so a prefilled answer has none.
  const tags = request.responsePrefix ? null : detected
  const budget = request.responsePrefix ? 0 : reasoningBudget
  const thinking = detected && budget !== undefined ? budget > 0 : undefined
  const conversation = {
    ...createConversation(request, rendering, thinking),
    ...(images.size > 0 && { images }),
  }
  const prompt = preparePrompt(engine, conversation, detected)
  // Calls that must be the whole answer cannot follow a prefilled beginning.
  const excludesCalls = request.responsePrefix && rendering.format.isExclusive
  const offersTools = use && use.choice !== 'none' && use.tools.length > 0 && !excludesCalls
  const offered = offersTools ? { format: rendering.format, use } : null
  if (offered && !offered.format.writesPlainText) assertNoLark(offered.use)
  const whole = completionConstraint(offered, answerFormat)
  const completion: Constraint | null =
    whole && answerFormat && request.responsePrefix
      ? { type: 'rest', text: request.responsePrefix, whole }
      : whole
  let prefix = toReasoningPrefix(prompt, tags, hasReasoningSwitch(template), reasoningBudget)
  const constraint = withReasoningPrefix(prefix, completion)
  let loosened: readonly string[] = []
  if (completion && constraint) loosened = await checkConstraint(engine, constraint, request)
  // If the block cannot be forced, the reasoning is closed when the model opens it.
  else if (constraint && !(await isSupported(engine, constraint))) prefix = { type: 'nothing' }
  return {
    prompt,
    constraint: withReasoningPrefix(prefix, completion),
    forcedCharacters: prefix.type === 'block' ? prefix.text.length : 0,
    removesConstraint: prefix.type === 'block' && !completion,
    loosened,
    visible: [...(tags ? [tags.open, tags.close] : []), ...(offered ? offered.format.markers : [])],
    tools: offered && {
      format: offered.format,
      callable: callableTools(offered.use),
      parallel: offered.use.parallel,
    },
    reasoning: tags && {
      tags,
      isOpen: findReasoningState(prompt.opening, tags) === 'open',
      budget: limitBudget(reasoningBudget, engine),
    },
  }
}

/** Returns the prompt. If it ends with the beginning of the answer, reasoning before it is closed. */
function preparePrompt(
  engine: Engine,
  conversation: Conversation,
  tags: ReasoningTags | null,
): Prompt {
  const prompt = engine.prepare(conversation)
  const { responsePrefix } = conversation
  if (!responsePrefix || !tags || findReasoningState(prompt.opening, tags) !== 'open') return prompt
  const block = closingText(tags)
  return engine.prepare({ ...conversation, responsePrefix: { ...responsePrefix, block } })
}

/** Returns the text that closes reasoning which the prompt has opened. */
const closingText = ({ close }: ReasoningTags): string => `\n${close}\n\n`

/** Throws if the request needs a call, which a prefilled answer cannot begin with. */
function assertNoRequiredCall({ tools }: GenerationRequest): void {
  if (tools?.choice !== 'required') return
  throw new InoriginError(
    'invalid_request',
    'tool_choice cannot be combined with a prefilled assistant message. Remove one of them.',
    { param: 'tool_choice' },
  )
}

/** Throws if a custom tool has a grammar that a JSON string cannot keep. */
function assertNoLark({ tools }: ToolUse): void {
  const index = tools.findIndex((tool) => larkOf(tool) !== null)
  if (index < 0) return
  throw new InoriginError(
    'invalid_request',
    'This model calls tools with JSON, whose strings cannot keep a Lark grammar. Use the syntax `regex`, or a model ' +
      'with the tool format hermes or xml.',
    { code: 'unsupported_constraint', param: `tools[${index}].input.definition` },
  )
}

/** Returns the reasoning budget. A requested budget leaves half of the context to the answer. */
const limitBudget = (requestedTokens: number | undefined, { contextWindow }: Engine): number =>
  requestedTokens === undefined
    ? Infinity
    : Math.min(requestedTokens, Math.floor(contextWindow / 2))

function chooseToolRendering(template: string | null, { toolFormat }: ModelTraits): ToolRendering {
  const wanted = FORMATS.find(({ name }) => name === toolFormat)
  if (toolFormat !== undefined && !wanted) {
    const names = FORMATS.map(({ name }) => name).join(', ')
    throw new InoriginError(
      'unavailable',
      `Unknown tool format "${toolFormat}" in the model's catalog entry. Expected: ${names}.`,
    )
  }
  const detected = rendersTools(template) ? (wanted ?? detectFormat(template ?? '')) : null
  const writesCallsItself = detected !== null && rendersCalls(template)
  return {
    format: detected ?? wanted ?? hermes,
    tools: detected !== null,
    calls: template === null ? 'nobody' : writesCallsItself ? 'template' : 'engine',
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
  return { type: 'block', text: `${tags.open}\n\n${tags.close}\n\n` }
}

function assertValidTools({ tools, only, choice }: ToolUse): void {
  const refuse = (message: string, param: string): InoriginError =>
    new InoriginError('invalid_request', message, { param })
  const names = new Set<string>()
  tools.forEach(({ name, parameters }, index) => {
    const type = typeof parameters === 'object' ? parameters['type'] : undefined
    if (parameters === false || (type !== undefined && ![type].flat().includes('object'))) {
      throw refuse(
        `The parameters of "${name}" must be the schema of an object.`,
        `tools[${index}].parameters`,
      )
    }
    if (!/^[\w.:/-]{1,128}$/.test(name)) {
      throw refuse(
        `"${name}" is not a valid tool name. Use at most 128 letters, digits, "_" and "-".`,
        `tools[${index}].name`,
      )
    }
    if (names.has(name)) throw refuse(`Two tools are named "${name}".`, `tools[${index}].name`)
    names.add(name)
  })
  if (choice === 'none') return
  const unknown = only?.find((name) => !names.has(name))
  if (unknown !== undefined) {
    throw refuse(`tool_choice names "${unknown}", which is not one of the tools.`, 'tool_choice')
  }
  if (choice === 'required' && (only?.length ?? names.size) === 0) {
    throw refuse('tool_choice requires a call, but no tool can be called.', 'tool_choice')
  }
}

const isSupported = (engine: Engine, constraint: Constraint): Promise<boolean> =>
  engine.check(constraint).then(
    () => true,
    () => false,
  )

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
