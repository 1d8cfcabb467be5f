/** `inorigin/testing` keeps the contract of the endpoints, as a host does. */
import { describe } from 'vitest'
import {
  createTestServer,
  type ScriptedAnswer,
  type TestModel,
} from '../../../src/extras/testing/server.ts'
import type { GenerationRequest } from '../../../src/types/index.ts'
import { checkClients } from '../../contract/clients.ts'
import { checkEndpoints } from '../../contract/wire.ts'

const MODEL = '@me/chat'
const CONTEXT_WINDOW = 4_096
/** Tokens whose bias has the script call tools, or write braces. */
const TOKENS = { end: [1], braces: [2, 3], thoughtEnd: 4, callStart: 5 }

const wordsOf = (count: number): string =>
  Array.from({ length: count }, (_, index) => `word${index}`).join(' ')

/** Arguments that fit the schema of any tool of the contract. */
function argumentsOf(schema: unknown): Record<string, unknown> {
  const { properties = {} } = schema as { properties?: Record<string, { enum?: unknown[] }> }
  return Object.fromEntries(
    Object.entries(properties).map(([name, { enum: values }]) => [name, values?.[0] ?? true]),
  )
}

/** Answers as a model would that does what its request asks for. */
function answer(request: GenerationRequest): ScriptedAnswer {
  const { tools, format, reasoningBudget = 0, messages, maxTokens, sampling } = request
  const reasoning = Number.isFinite(reasoningBudget) ? wordsOf(reasoningBudget) : ''
  const isAsked = tools?.choice === 'required' || sampling.logitBias?.[TOKENS.callStart] === 100
  const hasResult = messages.at(-1)?.role === 'tool'
  if (tools && tools.choice !== 'none' && isAsked && !hasResult) {
    const offered = tools.tools.filter(({ name }) => tools.only?.includes(name) ?? true)
    const calls = tools.parallel ? offered : offered.slice(0, 1)
    return {
      reasoning,
      toolCalls: calls.map(({ name, parameters }) => ({
        name,
        arguments: argumentsOf(parameters),
      })),
    }
  }
  if (format) {
    const value = 'schema' in format ? argumentsOf(format.schema) : {}
    return JSON.stringify(value)
  }
  return { reasoning, text: wordsOf(hasResult ? 3 : (maxTokens ?? 100) + 1) }
}

const models: readonly TestModel[] = [
  { tag: MODEL, answers: answer, maxInputTokens: CONTEXT_WINDOW },
]
const EMBEDDER = '@me/embed'
const KEY = 'sk-contract'

describe('by plain requests', () => {
  const server = createTestServer({ models })
  const traits = {
    model: MODEL,
    contextWindow: CONTEXT_WINDOW,
    reasons: false,
    goesOn: false,
    // They need a tokenizer, scores and a cache.
    lacks: [
      'biased',
      'with probabilities',
      'developers and systems wherever they stand',
      'what does not fit',
      'images',
      'a schema that cannot be kept',
      'arguments that cannot be kept',
      'samples the same for the same seed, and something else for another',
      'counts the tokens of the prefix cache',
    ],
  }
  checkEndpoints(
    () => server,
    () => traits,
  )
})

describe('by clients', () => {
  const embed = (text: string) => [
    text.length / 100,
    ...Array.from({ length: 15 }, (_, at) => at / 16),
  ]
  const embedders = [{ tag: EMBEDDER, dimensions: 16, embed }]
  const { origin, baseURL, fetch } = createTestServer({ models, embedders, apiKeys: [KEY] })
  const seer = { model: MODEL, question: '', images: [], tokens: 0 }
  checkClients(
    () => ({
      origin,
      baseURL,
      fetch,
      apiKey: KEY,
      model: MODEL,
      embedder: EMBEDDER,
      seer,
      tokens: TOKENS,
    }),
    // What scripts do not have: a context, probabilities and eyes.
    ['overflow', 'logprobs', 'image'],
  )
})
