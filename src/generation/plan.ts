/**
 * A request made ready for an engine, and refused where it cannot be answered: all that can be known
 * before weights are there.
 */
import type { Constraint } from '../engine/constraint.ts'
import type { Conversation, Engine, Prompt } from '../engine/engine.ts'
import { checkSchema } from '../engine/schema.ts'
import { createSteps } from '../engine/schema/steps.ts'
import { InoriginError } from '../error.ts'
import type { GenerationRequest, Tool, ToolUse } from '../types/index.ts'
import { answerConstraint, type Before, wholeConstraint } from './constraint.ts'
import { refuseImages } from './images.ts'
import { createConversation, type Telling, writesCalls, writesTools } from './prompt.ts'
import { detectMarks, hasSwitch, type Marks, stateOf } from './reasoning.ts'
import { hermes } from './tools/hermes.ts'
import { callable, detectFormat, FORMATS, type ToolFormat } from './tools/index.ts'

/** What a catalog says of a model's ways where its chat template does not. */
export interface Ways {
  /** Name of the format in which it calls tools; absent: as its chat template says. */
  toolFormat?: string
  /** Whether it reasons; absent: where its chat template knows of reasoning. */
  reasons?: boolean
}

export interface Plan {
  prompt: Prompt
  /** For the whole answer, reasoning included. */
  constraint: Constraint | null
  /** Characters with which the constraint begins every answer. */
  given: number
  /** That is all it does, so that it may be lifted behind them. */
  lift: boolean
  /** Special tokens that have to be told. */
  visible: readonly string[]
  /** What to look for in the answer. */
  tools: { format: ToolFormat; callable: readonly Tool[]; parallel: boolean } | null
  reasoning: { marks: Marks; inside: boolean; budget: number } | null
}

/**
 * Templates and tokenises, and checks what the answer has to be. Rejects with `invalid_request` for a
 * conversation that does not fit, images that the engine does not take, tools that are not there, and
 * schemas and grammars that cannot be kept, as by an answer that has begun; `param` names the field as
 * in {@link GenerationRequest}.
 */
export async function plan(
  engine: Engine,
  request: GenerationRequest,
  ways: Ways = {},
): Promise<Plan> {
  const { template } = engine
  const { tools: use, format: answerFormat, reasoningBudget } = request
  if (!engine.takesImages) refuseImages(request)
  if (use) checkTools(use)
  if (request.begun) checkBegun(request)

  const telling = tellingOf(template, ways)
  const known = ways.reasons === false ? null : detectMarks(template)
  // Reasoning comes before an answer: there is none where one has begun.
  const marks = request.begun ? null : known
  const budget = request.begun ? 0 : reasoningBudget
  const thinking = known && budget !== undefined ? budget > 0 : undefined
  const conversation = createConversation(request, telling, thinking)
  const prompt = request.begun ? goOn(engine, conversation, known) : engine.prepare(conversation)
  // Calls that are a whole answer cannot stand behind the beginning of one.
  const late = request.begun && telling.format.alone
  const asks = use && use.choice !== 'none' && use.tools.length > 0 && !late
  const offered = asks ? { format: telling.format, use } : null
  const answer = answerConstraint(offered, answerFormat)
  let before = whatComesBefore(prompt, marks, hasSwitch(template), reasoningBudget)
  const whole = wholeConstraint(before, answer)
  if (answer && whole) await checkAnswer(engine, whole, request)
  // A block that cannot be forced is closed when the model opens it.
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

/** A prompt that ends with the beginning of the answer, and with no reasoning before it. */
function goOn(engine: Engine, conversation: Conversation, marks: Marks | null): Prompt {
  const prompt = engine.prepare(conversation)
  const { begun } = conversation
  if (!begun || !marks || stateOf(prompt.opening, marks) !== 'open') return prompt
  const block = closed(marks)
  return engine.prepare({ ...conversation, begun: { ...begun, block } })
}

/** What ends reasoning that the prompt has begun. */
const closed = ({ close }: Marks): string => `\n${close}\n\n`

/** What is to be kept from an answer's first sign on cannot be asked of the rest of one. */
function checkBegun({ format, tools }: GenerationRequest): void {
  const param = format ? 'format' : tools?.choice === 'required' ? 'tool_choice' : null
  if (param === null) return
  throw new InoriginError(
    'invalid_request',
    `${param} is kept by a whole answer, and the last message begins this one: leave out either.`,
    { param },
  )
}

/** Reasoning that was asked for leaves half of the context to the answer. */
const limitBudget = (asked: number | undefined, { contextWindow }: Engine): number =>
  asked === undefined ? Infinity : Math.min(asked, Math.floor(contextWindow / 2))

function tellingOf(template: string | null, { toolFormat }: Ways): Telling {
  const wanted = FORMATS.find(({ name }) => name === toolFormat)
  if (toolFormat !== undefined && !wanted) {
    const names = FORMATS.map(({ name }) => name).join(', ')
    throw new InoriginError(
      'unavailable',
      `This model's catalog entry names the tool format ${toolFormat}; there are ${names}.`,
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
        `"${name}" cannot be the name of a tool: use letters, digits, "_" and "-", 128 at most.`,
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
    throw refuse('tool_choice asks for a call, but there is no tool to call.', 'tool_choice')
  }
}

const keeps = (engine: Engine, constraint: Constraint): Promise<boolean> =>
  engine.check(constraint).then(
    () => true,
    () => false,
  )

/** With the field at fault, where the error names none. */
function named(thrown: unknown, param: string): unknown {
  if (!(thrown instanceof InoriginError) || thrown.kind !== 'invalid_request') return thrown
  if (thrown.param) return thrown
  const { kind, message, code, details } = thrown
  return new InoriginError(kind, message, { code, details, param, cause: thrown })
}

/** Names the schema at fault by its place in the request, where it is one. */
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
      checkSchema(parameters, `tools[${index}].parameters`, steps)
    })
    if (format?.type === 'json_schema') checkSchema(format.schema, 'format.schema', steps)
    const places = [
      ...(tools?.tools ?? []).map((_, index) => `tools[${index}].parameters`),
      ...(format?.type === 'json_schema' ? ['format.schema'] : []),
    ]
    // The work on all of them together is too much.
    throw named(thrown, places.length === 1 ? String(places[0]) : tools ? 'tools' : 'format')
  }
}
