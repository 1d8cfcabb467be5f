/** Finds out by samples which parts of a conversation a chat template writes. */
import type { ChatMessage } from '../../types/index.ts'
import type { Conversation } from '../engine.ts'
import { TemplateError } from '../jinja/index.ts'
import {
  createRenderer,
  isTemplateFailure,
  parseOrFail,
  type RenderTemplate,
  SAMPLE_CALL,
  unescaped,
} from './template-renderer.ts'

/** The parts of calls that a template writes in the form of its model. */
export interface CallTraits {
  /** `true` if it writes the tool calls of an assistant message. */
  calls: boolean
  /** `true` if it writes messages of the role `tool`. */
  results: boolean
}

/** Properties of a chat template. */
export interface TemplateTraits {
  /** Names of the variables and functions that it reads. */
  names: ReadonlySet<string>
  /** `true` if it writes the names of tools. */
  tools: boolean
  /** Parts of calls that it writes in a conversation with tools. */
  withTools: CallTraits
  /** Parts of calls that it writes in a conversation without tools. */
  withoutTools: CallTraits
}

const known = new Map<string, TemplateTraits>()

/** Returns the properties of a chat template. One that is invalid writes nothing. */
export function templateTraits(source: string): TemplateTraits {
  const found = known.get(source)
  if (found) return found
  const traits = findTraits(source)
  known.set(source, traits)
  return traits
}

function findTraits(source: string): TemplateTraits {
  const program = parseOrFail(source)
  const names = program instanceof TemplateError ? new Set<string>() : program.names
  // Texts such as `bos_token` need not be the real ones, but must be there.
  const tokens = [...names].filter((name) => name.endsWith('_token')).map((name) => [name, ''])
  const render = createRenderer(source, Object.fromEntries(tokens))
  const { tools = [], messages } = SAMPLE_CALL
  const [question] = messages
  return {
    names,
    tools: question !== undefined && writes(render, { tools, messages: [question] }, NAME),
    withTools: findCallTraits(render, { tools, messages }),
    withoutTools: findCallTraits(render, { messages }),
  }
}

function findCallTraits(render: RenderTemplate, sample: Conversation): CallTraits {
  const results = writes(render, sample, RESULT)
  if (results) return { calls: writes(render, sample, PLACE), results }
  // A template that rejects results may still write calls.
  const messages = sample.messages.map((message): ChatMessage => {
    return message.role === 'tool' ? { role: 'user', content: message.content } : message
  })
  return { calls: writes(render, { ...sample, messages }, PLACE), results }
}

/** Texts of the sample: the name of its tool, the argument of its call, and the result. */
const [NAME, PLACE, RESULT] = ['warmth', 'Zurich', '21.5 degrees']

/** Returns `true` if a template writes a text of a conversation. */
function writes(render: RenderTemplate, conversation: Conversation, text: string): boolean {
  try {
    return render(conversation, unescaped).includes(text)
  } catch (thrown) {
    if (!isTemplateFailure(thrown)) throw thrown
    return false
  }
}
