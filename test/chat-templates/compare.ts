/** Compares our prompt of a conversation with those of Python. */
import type { Conversation } from '../../src/engine/engine.ts'
import { parse, render, TemplateError, toValue } from '../../src/engine/jinja/index.ts'
import { messageOf } from '../../src/error.ts'
import type { Body, BodyMessage } from './conversations.ts'
import { preparePrompt } from './prompt.ts'
import {
  CONTINUE,
  type Python,
  toOwnBody,
  toVariables,
  type Variables,
  withNoContent,
  withParts,
  withThinking,
} from './python.ts'

/** How our prompt and Python's relate. */
export type Outcome =
  | 'equal'
  /** Our prompt has only more: parts of the conversation that the template leaves out. */
  | 'equal but for'
  | 'different'
  /** Python has a prompt, but we refuse the conversation. */
  | 'refused'
  /** Neither has a prompt. */
  | 'both refuse'
  /** Python's rendering fails, but we change the conversation so that it does not. */
  | 'only ours'

/** Result of one comparison. */
export interface Comparison {
  outcome: Outcome
  /** The parts that only our prompt has, such as `tools`. */
  added: readonly Part[]
  /** `true` if the interpreter renders what Python renders of the same variables. */
  isSame: boolean
  ours: string
  expected: string
}

/** Compares the prompts of a body. */
export async function compare(python: Python, template: string, body: Body): Promise<Comparison> {
  const { texts, failure, isSame } = await renderAll(python, template, toVariables(body))
  const [expected = failure] = texts
  const base = { isSame, expected, added: [] }
  let ours: Awaited<ReturnType<typeof preparePrompt>>
  try {
    ours = await preparePrompt(template, body)
  } catch (thrown) {
    const outcome = texts.size === 0 ? 'both refuse' : 'refused'
    return { ...base, outcome, ours: messageOf(thrown) }
  }
  const { text, conversation } = ours
  if (texts.has(text)) return { ...base, outcome: 'equal', ours: text }
  for (const other of OTHER_FORMS) {
    const { texts: others } = await renderAll(python, template, toVariables(other(body)))
    if (others.has(text)) return { ...base, outcome: 'equal', ours: text }
  }
  if (texts.size === 0) return { ...base, outcome: 'only ours', ours: text }
  const added = await findAdded(python, template, body)
  const isOwn = added.length > 0 && (await rendersAs(python, template, conversation, text))
  return isOwn
    ? { ...base, outcome: 'equal but for', added, ours: text }
    : { ...base, outcome: 'different', ours: text }
}

/** Forms of a body that only some templates read. */
const OTHER_FORMS: readonly ((body: Body) => Body)[] = [withParts, withNoContent, withThinking]

async function renderAll(python: Python, template: string, all: readonly Variables[]) {
  const texts = new Set<string>()
  let failure = ''
  let isSame = true
  for (const variables of all) {
    const result = await python.render(template, variables)
    isSame &&= renderDirectly(template, variables) === (result.text ?? null)
    if (result.text === undefined) failure ||= `${result.error}: ${result.message}`
    else texts.add(cutAtMark(result.text, variables))
  }
  return { texts, failure, isSame }
}

/** Returns the text that the interpreter renders of the variables of Python; `null` if it fails. */
function renderDirectly(template: string, variables: Variables): string | null {
  const values = Object.entries(variables).map(([name, value]) => [name, toValue(value)] as const)
  try {
    return render(parse(template), values, { characters: 100_000, messages: 100 })
  } catch (thrown) {
    if (thrown instanceof TemplateError) return null
    throw thrown
  }
}

/** Returns the text up to the end of a prefilled answer, if there is one. */
function cutAtMark(text: string, { continues }: Variables): string {
  if (!continues) return text
  const at = text.lastIndexOf(CONTINUE.trim())
  if (at < 0) return text
  return text.startsWith(CONTINUE, at) ? text.slice(0, at) : text.slice(0, at).trimEnd()
}

/** Parts of a conversation that a template may leave out. */
type Part = 'tools' | 'calls' | 'results' | 'instructions'

/** Functions that return a body without a part. */
const WITHOUT: Readonly<Partial<Record<Part, (body: Body) => Body>>> = {
  tools: ({ messages }) => ({ messages }),
  calls: (body) => ({
    ...body,
    messages: body.messages.map((message): BodyMessage => ({ ...message, tool_calls: undefined })),
  }),
  results: (body) => ({
    ...body,
    messages: body.messages.map((message) =>
      message.role === 'tool' ? { ...message, content: 'another' } : message,
    ),
  }),
}

/** Resolves with the parts of a body that Python's prompt does not show. */
async function findAdded(python: Python, template: string, body: Body): Promise<Part[]> {
  const isLeftOut = async (rest: Body): Promise<boolean> => {
    const [whole, other] = [toVariables(body), toVariables(rest)]
    const { texts } = await renderAll(python, template, whole)
    const { texts: others } = await renderAll(python, template, other)
    return texts.size > 0 && [...texts][0] === [...others][0]
  }
  const added: Part[] = []
  for (const [part, without] of Object.entries(WITHOUT) as [Part, (body: Body) => Body][]) {
    const rest = without(body)
    if (JSON.stringify(rest) !== JSON.stringify(body) && (await isLeftOut(rest))) added.push(part)
  }
  for (const [at, message] of body.messages.entries()) {
    if (message.role !== 'system' && message.role !== 'developer') continue
    const messages = body.messages.with(at, { ...message, content: 'another' })
    if (await isLeftOut({ ...body, messages })) return [...added, 'instructions']
  }
  return added
}

const same = (body: Body): Body => body

/** Resolves with `true` if Python renders our conversation, with what we added, as we do. */
async function rendersAs(
  python: Python,
  template: string,
  conversation: Conversation,
  text: string,
): Promise<boolean> {
  for (const merges of [null, 'system', 'user'] as const) {
    const own = toOwnBody(conversation, merges)
    for (const form of [same, ...OTHER_FORMS]) {
      const { texts } = await renderAll(python, template, toVariables(form(own)))
      if (texts.has(text)) return true
    }
  }
  return false
}
