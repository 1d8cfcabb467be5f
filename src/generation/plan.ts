/**
 * Prepares a request for an engine, and rejects it if it cannot be answered. Everything here runs
 * before the weights are loaded.
 */
import type { Constraint } from '../engine/constraint.ts'
import type { Conversation, Engine, Prompt } from '../engine/engine.ts'
import { assertSchemaSupported } from '../engine/schema.ts'
import { createSteps } from '../engine/schema/steps.ts'
import { InoriginError } from '../error.ts'
import type { GenerationRequest, Tool, ToolUse } from '../types/index.ts'
import { answerConstraint, type Before, wholeConstraint } from './constraint.ts'
import { refuseImages } from './images.ts'
import { createConversation, type Telling, writesCalls, writesTools } from './prompt.ts'
import { detectMarks, hasSwitch, type Marks, stateOf } from './reasoning.ts'
import { hermes } from './tools/hermes.ts'
import { callable, detectFormat, FORMATS, type ToolFormat } from './tools/index.ts'

/** Properties of a model that its catalog entry states because its chat template does not. */
export interface Ways {
  /** Name of the tool format that the model uses. Default: detected from the chat template. */
  toolFormat?: string
  /** `false` if the model does not reason. Otherwise, its chat template decides. */
  reasons?: boolean
}

export interface Plan {
  prompt: Prompt
  /** Constraint of the whole answer, reasoning included. */
  constraint: Constraint | null
  /** Number of characters with which the constraint begins every answer. */
  given: number
  /** `true` if the constraint fixes only those characters, so that it can be lifted after them. */
  lift: boolean
  /** Special tokens that must appear in the engine's text. */
  visible: readonly string[]
  /** Tools whose calls are parsed from the answer; `null` if none can be called. */
  tools: { format: ToolFormat; callable: readonly Tool[]; parallel: boolean } | null
  /** Reasoning that is split off from the answer; `null` if there is none. */
  reasoning: { marks: Marks; inside: boolean; budget: number } | null
}

/**
 * Applies the chat template, tokenizes the prompt, and checks the constraint of the answer. Rejects
 * with `invalid_request` if the conversation does not fit, the engine does not accept its images, a
 * tool is unknown, or a schema or grammar is not supported. The same holds for a format or required
 * call with a prefilled answer. `param` names the field as in {@link GenerationRequest}.
 */
export async function plan(
  engine: Engine,
  request: GenerationRequest,
  ways: Ways = {},
): Promise<Plan> {
  const { template } = engine
  const { tools: use, format: answerFormat, reasoningBudget } = request
  if (!engine.supportsImages) refuseImages(request)
  if (use) checkTools(use)
  if (request.begun) checkBegun(request)

  const telling = tellingOf(template, ways)
  const known = ways.reasons === false ? null : detectMarks(template)
  // Reasoning comes before an answer, so a prefilled answer has none.
  const marks = request.begun ? null : known
  const budget = request.begun ? 0 : reasoningBudget
  const thinking = known && budget !== undefined ? budget > 0 : undefined
  const conversation = createConversation(request, telling, thinking)
  const prompt = request.begun ? goOn(engine, conversation, known) : engine.prepare(conversation)
  // Calls that must be the whole answer cannot follow a prefilled beginning.
  const late = request.begun && telling.format.alone
  const asks = use && use.choice !== 'none' && use.tools.length > 0 && !late
  const offered = asks ? { format: telling.format, use } : null
  const answer = answerConstraint(offered, answerFormat)
  let before = whatComesBefore(prompt, marks, hasSwitch(template), reasoningBudget)
  const whole = wholeConstraint(before, answer)
  if (answer && whole) await checkAnswer(engine, whole, request)
  // If the block cannot be forced, the reasoning is closed when the model opens it.
  else if (whole && !(await keeps(engine, whole))) before = { type: 'nothing' }
  return {
    prompt,
    constraint: wholeConstraint(before, answer),
    given: before.type === 'block' ? before.text.length : 0,
    lift: before.type === 'block' && !answer,
    visible: [
      ...(marks ? [marks.open, marks.close] : []),
      ...(offered ? offered.format.markers : []),
    ],
    tools: offered && {
      format: offered.format,
      callable: callable(offered.use),
      parallel: offered.use.parallel,
    },
    reasoning: marks && {
      marks,
      inside: stateOf(prompt.opening, marks) === 'open',
      budget: limitBudget(reasoningBudget, engine),
    },
  }
}

/** Returns a prompt that ends with the beginning of the answer. Reasoning before it is closed. */
function goOn(engine: Engine, conversation: Conversation, marks: Marks | null): Prompt {
  const prompt = engine.prepare(conversation)
  const { begun } = conversation
  if (!begun || !marks || stateOf(prompt.opening, marks) !== 'open') return prompt
  const block = closed(marks)
  return engine.prepare({ ...conversation, begun: { ...begun, block } })
}

/** Returns the text that closes reasoning which the prompt has opened. */
const closed = ({ close }: Marks): string => `\n${close}\n\n`

/** Throws if the request needs a constraint that must apply from the answer's first character. */
function checkBegun({ format, tools }: GenerationRequest): void {
  const param = format ? 'format' : tools?.choice === 'required' ? 'tool_choice' : null
  if (param === null) return
  throw new InoriginError(
    'invalid_request',
    `${param} cannot be combined with a prefilled assistant message. Remove one of them.`,
    { param },
  )
}

/** Returns the reasoning budget. A requested budget leaves half of the context to the answer. */
const limitBudget = (asked: number | undefined, { contextWindow }: Engine): number =>
  asked === undefined ? Infinity : Math.min(asked, Math.floor(contextWindow / 2))

function tellingOf(template: string | null, { toolFormat }: Ways): Telling {
  const wanted = FORMATS.find(({ name }) => name === toolFormat)
  if (toolFormat !== undefined && !wanted) {
    const names = FORMATS.map(({ name }) => name).join(', ')
    throw new InoriginError(
      'unavailable',
      `Unknown tool format "${toolFormat}" in the model's catalog entry. Expected: ${names}.`,
    )
  }
  const known = writesTools(template) ? (wanted ?? detectFormat(template ?? '')) : null
  const written = known !== null && writesCalls(template)
  return {
    format: known ?? wanted ?? hermes,
    tools: known !== null,
    calls: template === null ? 'nobody' : written ? 'template' : 'engine',
  }
}

function whatComesBefore(
  { opening }: Prompt,
  marks: Marks | null,
  switched: boolean,
  budget: number | undefined,
): Before {
  if (!marks) return { type: 'nothing' }
  const state = stateOf(opening, marks)
  if (budget !== 0) return { type: state === 'open' ? 'begun' : 'free', marks }
  if (state === 'open') return { type: 'block', text: closed(marks) }
  if (state === 'closed' || switched) return { type: 'nothing' }
  return { type: 'block', text: `${marks.open}\n\n${marks.close}\n\n` }
}

function checkTools({ tools, only, choice }: ToolUse): void {
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

const keeps = (engine: Engine, constraint: Constraint): Promise<boolean> =>
  engine.check(constraint).then(
    () => true,
    () => false,
  )

/** Sets `param` of an `invalid_request` error that names no field. Returns other errors as is. */
function named(thrown: unknown, param: string): unknown {
  if (!(thrown instanceof InoriginError) || thrown.kind !== 'invalid_request') return thrown
  if (thrown.param) return thrown
  const { kind, message, code, details } = thrown
  return new InoriginError(kind, message, { code, details, param, cause: thrown })
}

/**
 * Rejects with `invalid_request` if the constraint is not supported. The error names the schema.
 */
async function checkAnswer(
  engine: Engine,
  whole: Constraint,
  request: GenerationRequest,
): Promise<void> {
  try {
    await engine.check(whole)
  } catch (thrown) {
    const { tools, format } = request
    const steps = createSteps()
    tools?.tools.forEach(({ parameters }, index) => {
      assertSchemaSupported(parameters, `tools[${index}].parameters`, steps)
    })
    if (format?.type === 'json_schema') assertSchemaSupported(format.schema, 'format.schema', steps)
    const places = [
      ...(tools?.tools ?? []).map((_, index) => `tools[${index}].parameters`),
      ...(format?.type === 'json_schema' ? ['format.schema'] : []),
    ]
    // No schema is invalid on its own: the limit is exceeded by all of them together.
    throw named(thrown, places.length === 1 ? String(places[0]) : tools ? 'tools' : 'format')
  }
}
