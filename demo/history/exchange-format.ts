/** Conversations as files: JSON, which can be imported again, and Markdown to read. */
import * as v from 'valibot'
import { pathOf, type Conversation, type KeptAnswer } from '../chat/tree.ts'
import { summary } from '../wire/summary.ts'

/** Limits of an imported file. */
export const MAX_FILE_BYTES = 32_000_000
const MAX_CONVERSATIONS = 2_000
const MAX_TURNS = 2_000
const MAX_TEXT_CHARACTERS = 2_000_000
const MAX_IMAGES = 100
/** Rounds of one answer, and calls of one round. */
const MAX_CALLS = 100

const FORMAT = 'inorigin-playground'

const text = v.pipe(
  v.string(),
  v.maxLength(MAX_TEXT_CHARACTERS, `a text of at most ${MAX_TEXT_CHARACTERS} characters`),
)
const name = v.pipe(v.string(), v.minLength(1), v.maxLength(200))
const amount = v.optional(v.pipe(v.number(), v.finite()))
const time = v.pipe(v.number(), v.finite(), v.minValue(0))
/** An image of another address would be a request to it. */
const image = v.pipe(v.string(), v.regex(/^data:image\/(?:png|jpeg|gif|webp);base64,[\w+/=]*$/))

/** A tool call with its result. */
const result = v.object({
  call: v.object({ id: v.pipe(v.string(), v.maxLength(200)), name, arguments: text }),
  content: text,
  isError: v.boolean(),
})

const round = v.object({ text, results: v.pipe(v.array(result), v.maxLength(MAX_CALLS)) })

const source = v.object({
  title: name,
  path: v.pipe(v.string(), v.regex(/^(?:docs\/)?[\w-]{1,100}\.md$/, 'the path of a page')),
})

const answer = v.object({
  text,
  rounds: v.optional(v.pipe(v.array(round), v.maxLength(MAX_CALLS))),
  sources: v.optional(v.pipe(v.array(source), v.maxLength(MAX_CALLS))),
  reasoning: v.optional(text),
  model: name,
  url: v.pipe(v.string(), v.regex(/^\/[\w/.-]{0,200}$/, 'the path of an endpoint')),
  finish: v.optional(v.pipe(v.string(), v.maxLength(100))),
  promptTokens: amount,
  cachedTokens: amount,
  completionTokens: amount,
  reasoningTokens: amount,
  firstText: amount,
  reasoningTime: amount,
  end: amount,
} satisfies Record<keyof KeptAnswer, unknown>)

const turn = v.object({
  id: name,
  parent: v.nullable(name),
  created: time,
  changed: time,
  question: text,
  images: v.pipe(v.array(image), v.maxLength(MAX_IMAGES)),
  answer: v.optional(answer),
  stopped: v.optional(v.boolean()),
  error: v.optional(text),
})

const conversation = v.object({
  id: name,
  title: v.pipe(v.string(), v.maxLength(1_000)),
  created: time,
  changed: time,
  turns: v.pipe(v.array(turn), v.maxLength(MAX_TURNS, `at most ${MAX_TURNS} turns`)),
  chosen: v.record(name, name),
  deleted: v.pipe(v.array(name), v.maxLength(MAX_TURNS)),
})

const file = v.object({
  format: v.literal(FORMAT, `"${FORMAT}"`),
  version: v.literal(1, '1'),
  conversations: v.pipe(
    v.array(conversation),
    v.maxLength(MAX_CONVERSATIONS, `at most ${MAX_CONVERSATIONS} conversations`),
  ),
})

/** Returns the content of a JSON file. */
export function toJson(conversations: readonly Conversation[]): string {
  return JSON.stringify({ format: FORMAT, version: 1, conversations }, null, 2)
}

/**
 * Returns the conversations of a JSON file.
 *
 * @throws Error if it is not such a file. The message says where it differs.
 */
export function parseJson(content: string): Conversation[] {
  const parsed = v.safeParse(file, readJson(content))
  if (parsed.success) return parsed.output.conversations
  const [issue] = parsed.issues
  const where = v.getDotPath(issue) ?? 'the file'
  throw new Error(
    `The file is not an export of this playground: ${where} is wrong. ${issue.message}. ` +
      'Choose a JSON file that "Export all" wrote.',
  )
}

function readJson(content: string): unknown {
  try {
    return JSON.parse(content)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new Error(`The file is not JSON (${why}). Choose a file that "Export all" wrote.`, {
      cause: error,
    })
  }
}

/** Returns the chosen branch of a conversation as Markdown. */
export function toMarkdown(given: Conversation): string {
  const parts = pathOf(given).map(({ question, images, answer: kept, error }) => {
    const left = images.length === 1 ? '1 image is' : `${images.length} images are`
    const pictures = images.length > 0 ? `\n\n(${left} not part of this file.)` : ''
    const lines = question.split('\n').map((line) => `> ${line}`.trimEnd())
    const meta = kept ? `\n\n_${[kept.model, summary(kept)].filter(Boolean).join(' · ')}_` : ''
    return `${lines.join('\n')}${pictures}\n\n${kept?.text ?? error ?? ''}${meta}`
  })
  return [`# ${given.title}`, ...parts].join('\n\n').concat('\n')
}

/** Returns a name for a file of a title. */
export function toFileName(title: string, extension: string): string {
  const safe = title.replaceAll(/[^\p{L}\p{N}]+/gu, '-').slice(0, 60)
  return `${safe.replaceAll(/^-|-$/g, '') || 'conversation'}.${extension}`
}
