/**
 * Schema of fields that clients send on several paths. Some are supported in all styles. The rest,
 * including extensions of other servers, are refused unless their value is the default.
 */
import * as v from 'valibot'
import type { ChatMessage, ReasoningEffort, Sampling } from '../types/index.ts'
import { isObject } from '../values/objects.ts'
import * as f from './fields.ts'

// Reasoning fields of all styles, and their conversion to a token budget.

/** Reasoning tokens for each effort. The model worker caps them at half of its context. */
const BUDGET_TOKENS = {
  none: 0,
  minimal: 64,
  low: 256,
  medium: 1024,
  high: 4096,
  xhigh: Infinity,
  max: Infinity,
} as const satisfies Record<ReasoningEffort, number>

/** Reasoning effort, the name of a budget. */
export const effortField = f.optional(
  f.oneOf(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const),
)
/** Reasoning effort in the Anthropic style, which disables reasoning by another field. */
export const outputEffortField = f.optional(
  f.oneOf(['low', 'medium', 'high', 'xhigh', 'max'] as const),
)

const display = f.optional(f.oneOf(['summarized', 'omitted'] as const))

/** Field of the Anthropic style that enables reasoning and sets its budget. */
const thinkingField = f.optional(
  f.taggedUnion('type', {
    disabled: {},
    enabled: { budget_tokens: f.integerAtLeast(1), display },
    adaptive: { display },
    between_tools: f.rejected,
  }),
)

/** Variables of chat templates that the server sets. */
const OWN_VARIABLES = /^(?:messages|tools|add_generation_prompt|continue_final_message|\w+_token)$/

/** Variables for the chat template, in the field of vLLM and llama.cpp. */
const templateVariables = f.optional(
  v.pipe(
    f.anyObject,
    v.check(
      (values) => !Object.keys(values).some((name) => OWN_VARIABLES.test(name)),
      'an object without messages, tools, add_generation_prompt, continue_final_message and tokens',
    ),
  ),
)

/** Reasoning fields of a body of any style. */
interface ReasoningFields {
  reasoning?: { effort?: v.InferOutput<typeof effortField> } | null | undefined
  reasoning_effort?: v.InferOutput<typeof effortField>
  thinking?: v.InferOutput<typeof thinkingField>
  output_config?: { effort?: v.InferOutput<typeof outputEffortField> } | null | undefined
  chat_template_kwargs?: v.InferOutput<typeof templateVariables>
}

/**
 * Returns the reasoning settings of a body. `budget` is in tokens, `undefined` for the model's
 * default. `shown` is `true` if the response contains the reasoning: clients that did not ask may not
 * expect it. `fields` are those that the budget comes from, and `ignored` those that state another
 * one. Disabled thinking wins over any effort, and the effort of a style's own field over others.
 */
export function toReasoning(body: ReasoningFields) {
  const { reasoning_effort: general, thinking: config } = body
  const own = body.reasoning?.effort
  const output = body.output_config?.effort
  const direct = own || general
  const directName = own ? 'reasoning.effort' : 'reasoning_effort'
  const effort = direct ?? output ?? undefined
  const variables = withoutNull(body.chat_template_kwargs)
  const budget = toBudget(config, effort) ?? toVariablesBudget(variables ?? {})
  const isOverridden = (level: ReasoningEffort | null | undefined): boolean =>
    Boolean(level && BUDGET_TOKENS[level] !== budget)
  const isOmitted = config && config.type !== 'disabled' && config.display === 'omitted'
  const namesOf = (entries: ReadonlyArray<[name: string, applies: unknown]>): string[] =>
    entries.flatMap(([name, applies]) => (applies ? [name] : []))
  return {
    budget,
    /** Fields of a request that chat templates read. */
    forTemplate: {
      reasoningEffort: config?.type === 'disabled' ? ('none' as const) : effort,
      templateVariables: variables,
    },
    shown: (budget ?? 0) > 0 && !isOmitted,
    fields: namesOf([
      [directName, direct],
      ['thinking', config],
      ['output_config.effort', output],
      ['chat_template_kwargs', !config && !effort && variables],
    ]),
    ignored: namesOf([
      [directName, isOverridden(direct)],
      ['output_config.effort', isOverridden(output)],
      ['reasoning_effort', own && general && general !== own],
    ]),
  }
}

function toBudget(
  config: ReasoningFields['thinking'],
  level?: ReasoningEffort,
): number | undefined {
  if (!config) return level && BUDGET_TOKENS[level]
  if (config.type === 'enabled') return config.budget_tokens
  return config.type === 'disabled' ? 0 : BUDGET_TOKENS[level ?? 'medium']
}

/** Returns the members that are not null; `undefined` if there are none. */
function withoutNull(values: ReasoningFields['chat_template_kwargs']) {
  const given = Object.entries(values ?? {}).filter(([, value]) => value !== null)
  return given.length > 0 ? Object.fromEntries(given) : undefined
}

/** Returns the budget that variables of a chat template state; `undefined` if they state none. */
function toVariablesBudget(variables: Readonly<Record<string, unknown>>): number | undefined {
  const { enable_thinking: enabled, thinking, thinking_budget: tokens } = variables
  if (enabled === false || thinking === false) return 0
  if (Number.isInteger(tokens) && Number(tokens) >= 0) return Number(tokens)
  if (enabled === true || thinking === true) return Infinity
  const level = variables['reasoning_effort']
  return isLevel(level) ? BUDGET_TOKENS[level] : undefined
}

const isLevel = (value: unknown): value is ReasoningEffort =>
  typeof value === 'string' && Object.hasOwn(BUDGET_TOKENS, value)

/** Returns the conflict between a reasoning budget and the limit of output tokens. */
export function findBudgetConflict(
  config: ReasoningFields['thinking'],
  maxTokens: number | null | undefined,
): f.FieldConflict | undefined {
  if (config?.type !== 'enabled' || !maxTokens || config.budget_tokens < maxTokens) return undefined
  const message = `less than the limit of output tokens, ${maxTokens}`
  return f.conflict(['thinking', 'budget_tokens'], config.budget_tokens, message)
}

/** Accepts only values that change nothing. */
const only = (...harmless: readonly unknown[]) =>
  f.unsupported(v.unknown(), (value) => harmless.includes(value))
const off = only(false, 0, '')
const onlyOne = f.unsupported(
  f.integerAtLeast(1),
  (count) => count === 1,
  'send one request for each answer',
)
const harmlessToolChoice = f.unsupported(
  f.oneOf(['auto', 'none', 'required']),
  (word) => word !== 'required',
  'send tool_choice instead',
)
const namedToolChoice = f.unsupported(f.anyObject, () => false, 'send tool_choice instead')
const emptyArray = f.unsupported(f.anyArray, (list) => list.length === 0)

/** Fields of a text part, in the form that all styles use. */
export const textPart = { text: f.string }

/** Refuses a field that has another name in this style, unless its value is empty. */
export function renamedField(advice: string) {
  const isEmpty = (value: unknown) => value === '' || (Array.isArray(value) && value.length === 0)
  return f.unsupported(v.unknown(), isEmpty, advice)
}

/** Returns `true` for context edits that keep everything. */
export function keepsAllContext(management: unknown): boolean {
  const edits = isObject(management) ? (management['edits'] ?? []) : management
  return Array.isArray(edits) && edits.every((edit) => isObject(edit) && edit['keep'] === 'all')
}

export const sharedFields = {
  parallel_tool_calls: f.optional(f.flag),
  reasoning_effort: effortField,
  thinking: thinkingField,

  functions: f.unsupported(f.anyArray, (list) => list.length === 0, 'send tools instead'),
  function_call: f.optional(f.stringOr(harmlessToolChoice, namedToolChoice)),
  mcp_servers: emptyArray,
  fallbacks: emptyArray,
  moderation: f.rejectedField,

  guided_json: f.rejectedField,
  guided_regex: f.rejectedField,
  guided_grammar: f.rejectedField,
  guided_choice: f.rejectedField,
  structured_outputs: f.rejectedField,
  grammar: off,
  json_schema: f.rejectedField,
  chat_template_kwargs: templateVariables,
  enable_thinking: f.optional(f.rejectedWith('send chat_template_kwargs instead')),
  min_tokens: off,
  ignore_eos: off,
  continue_final_message: off,
  add_generation_prompt: only(true),
  echo: off,
  suffix: off,
  typical_p: only(1),
  mirostat: off,

  n: onlyOne,
  best_of: onlyOne,

  verbosity: f.withoutEffect(f.oneOf(['low', 'medium', 'high']), (level) => level === 'medium'),
  modalities: f.unsupported(
    f.anyArray,
    (kinds) => kinds.every((kind) => kind === 'text'),
    'models output text',
  ),
  audio: f.rejectedField,
  prediction: f.withoutEffect(f.anyObject),
  web_search_options: f.rejectedField,

  container: f.rejectedField,
  context_management: f.unsupported(v.unknown(), keepsAllContext),
  compaction: f.rejectedField,
}

/** Refuses logprobs in a style whose responses have no field for them. */
export const rejectedLogprobs = {
  logprobs: f.unsupported(f.flag, (on) => !on),
  top_logprobs: f.unsupported(
    f.numberWhere(() => true, 'a number'),
    (most) => most === 0,
  ),
}

const MAX_TOP_LOGPROBS = 20

/** Number of alternatives to report with the logprobs of each token. */
export const topLogprobs = f.optional(
  v.pipe(
    f.integerAtLeast(0),
    v.check((count) => count <= MAX_TOP_LOGPROBS, `at most ${MAX_TOP_LOGPROBS}`),
  ),
)

/** Refuses a format that this style takes in another field, unless it is plain text. */
export const renamedFormat = (advice: string) =>
  f.unsupported(v.unknown(), (value) => isObject(value) && value['type'] === 'text', advice)

/** Fields of the Anthropic style: the effort, and formats that another style has elsewhere. */
export const renamedOutput = (advice: string) => ({
  output_config: f.optional(f.object({ effort: outputEffortField, format: renamedFormat(advice) })),
  output_format: renamedFormat(advice),
})

// Sampling fields of all styles, and their conversion to sampler settings.

const topP = f.numberBetween(0, 1)
const topK = f.integerAtLeast(0)
const penalty = f.optional(f.numberBetween(-2, 2))

/** Accepts logit biases by token id. */
const biases = v.lazy((input) => {
  if (!isObject(input)) return notBias
  const ids = Object.keys(input)
  const other = ids.find((key) => !/^\d{1,9}$/.test(key))
  if (other === undefined) return f.object(Object.fromEntries(ids.map((id) => [id, bias])))
  // The message then ends with the key, such as `not "-1"`.
  return v.pipe(f.replacedBy(other as never), notTokenIds)
})
const bias = f.optional(f.numberBetween(-100, 100))
const notBias = f.refusedAs('an object that maps token ids to biases')
const notTokenIds = v.check<never, string>(() => false, 'an object whose keys are token ids')

export const chatSampling = {
  temperature: f.optional(f.numberBetween(0, 2)),
  top_p: f.optional(topP),
  top_k: f.optional(topK),
  min_p: f.optional(f.numberBetween(0, 1)),
  frequency_penalty: penalty,
  presence_penalty: penalty,
  repetition_penalty: f.optional(f.numberBetween(0.01, 100)),
  logit_bias: f.optional(biases),
  seed: f.optional(f.integer),
}

export const messagesSampling = {
  ...chatSampling,
  top_p: f.optional(exceptUnset(topP)),
  top_k: f.optional(exceptUnset(topK)),
}

/** Accepts -1 as absent: clients of the Anthropic style send it for unset values. */
function exceptUnset<T extends v.GenericSchema>(rule: T) {
  return f.when((input) => input === -1, f.replacedBy(null), rule)
}

type Fields = { [Name in keyof typeof chatSampling]?: v.InferOutput<(typeof chatSampling)[Name]> }

/** Converts the fields to sampler settings. `top_p: 0` keeps only the most probable token. */
export function toSampling(body: Fields): Sampling {
  const greedy = body.top_p === 0
  return {
    temperature: body.temperature ?? undefined,
    topP: greedy ? undefined : (body.top_p ?? undefined),
    topK: greedy ? 1 : (body.top_k ?? undefined),
    minP: body.min_p ?? undefined,
    frequencyPenalty: body.frequency_penalty ?? undefined,
    presencePenalty: body.presence_penalty ?? undefined,
    repetitionPenalty: body.repetition_penalty ?? undefined,
    logitBias: toLogitBias(body.logit_bias),
    seed: body.seed ?? undefined,
  }
}

function toLogitBias(sent: Fields['logit_bias']): Sampling['logitBias'] {
  if (!sent) return undefined
  const given = Object.entries(sent).flatMap(([id, one]) => (one === null ? [] : [[id, one]]))
  return Object.fromEntries(given) as Sampling['logitBias']
}

// Prefill by the client: the completion continues the text of a last assistant message.

/** Splits off the last message as the prefilled text. It must be an assistant message of text. */
export const splitPrefilled = (messages: readonly ChatMessage[]) => ({
  messages: messages.slice(0, -1),
  responsePrefix: messages.at(-1)?.content ?? '',
})

/**
 * Returns what forbids a prefilled message apart from its role and content. Reasoning comes before
 * the text, so a prefill excludes it. A reasoning effort is allowed and has no effect.
 */
export function findPrefillConflict(
  messages: readonly unknown[],
  { thinking }: ReasoningFields,
): f.FieldConflict | undefined {
  if (messages.length < 2) {
    const message = 'an array with a message before the prefilled assistant message'
    return f.conflict('messages', messages, message)
  }
  if (!thinking || thinking.type === 'disabled') return undefined
  const message = 'disabled or left out with a prefilled assistant message'
  return f.conflict(['thinking', 'type'], thinking.type, message)
}

/** Message in the Anthropic style. */
interface AnthropicMessage {
  role: string
  content: string | ReadonlyArray<{ type: string; text?: string }>
}

/** Returns `true` if the last message is a prefill in the Anthropic style: only text. */
export function isPrefilled(messages: readonly AnthropicMessage[]): boolean {
  const last = messages.at(-1)
  return messages.length > 1 && last?.role === 'assistant' && findNonText(last) < 0
}

/** Returns why a last assistant message cannot be continued in the Anthropic style. */
export function findLastMessageConflict(
  body: { messages: readonly AnthropicMessage[] } & ReasoningFields,
): f.FieldConflict | undefined {
  const { messages } = body
  const index = messages.length - 1
  const last = messages[index]
  if (last?.role !== 'assistant') return undefined
  const { content } = last
  const at = findNonText(last)
  if (at >= 0 && typeof content !== 'string') {
    const path = ['messages', index, 'content', at, 'type']
    return f.conflict(path, content[at]?.type, 'text in a prefilled assistant message')
  }
  const text = typeof content === 'string' ? content : content.map((block) => block.text).join('')
  if (/\s$/.test(text)) {
    // Models seldom continue well after a space. Clients know the wording in parentheses.
    const message =
      'without whitespace at its end (final assistant content cannot end with trailing whitespace)'
    return f.conflict(['messages', index, 'content'], text, message)
  }
  return findPrefillConflict(messages, body)
}

/** Returns the index of the first block that is not text, or -1. */
const findNonText = ({ content }: AnthropicMessage): number =>
  typeof content === 'string' ? -1 : content.findIndex(({ type }) => type !== 'text')
