/** The host of the test server: its models give scripted answers. */
import { InoriginError } from '../../error.ts'
import type { Authorize } from '../../host/requests/authorization.ts'
import { createResponseStore } from '../../host/requests/response-store.ts'
import { streamPrediction } from '../../host/requests/prediction-stream.ts'
import { runRemotely } from '../../predictor/remote/run.ts'
import { HOST_METHODS } from '../../types/host.ts'
import type {
  Caller,
  EmbeddingEvent,
  Generation,
  GenerationEvent,
  GenerationRequest,
  Host,
  HostService,
  LoadProgress,
  Tag,
} from '../../types/index.ts'
import {
  countPromptTokens,
  countWords,
  playAnswer,
  scriptError,
  type ScriptedAnswer,
} from './answers.ts'
import { createTestBackground } from './background.ts'
import type { Loadable } from './loads.ts'
import type { TestEmbedder, TestModel, TestPredictor, TestServerOptions } from './options.ts'

export interface ScriptedOptions extends Required<
  Pick<TestServerOptions, 'models' | 'predictors' | 'embedders'>
> {
  /** Resolves when the tag is loaded. Rejects with `not_found` for an unknown one. */
  load(tag: Tag, caller: Caller<LoadProgress>): Promise<void>
  /** Throws `not_found` for an unknown tag. The error names the field of the body: `param`. */
  find(tag: Tag, param?: TagParam): Loadable
  /** Yields the events of an answer. Default: those of its words. */
  play?: typeof playAnswer
}

export type TagParam = 'model' | 'tag'
export type ScriptedHost = Host & Pick<HostService, 'predict' | 'predictNext'>

/** Date on which the models of a test were added. */
const CREATED = '2026-01-01T00:00:00Z'
const DEFAULT_CONTEXT_TOKENS = 4_096

const CAPABILITIES = { tools: true, thinking: true, imageInput: true, structuredOutputs: true }

export function createScriptedHost(options: ScriptedOptions) {
  const { models, predictors, embedders, load, find, play = playAnswer } = options
  const requests: GenerationRequest[] = []
  const nextAnswer = createAnswers(models)

  async function generate(request: GenerationRequest, caller: Caller): Promise<Generation> {
    assertModel(find(request.model))
    const answer = await nextAnswer(request, () => requests.push(structuredClone(request)))
    const { signal } = caller
    const steps: LoadProgress[] = []
    await load(request.model, { key: null, signal, onEvent: (step) => steps.push(step) })
    return { ignored: [], events: events(request, answer, steps, signal) }
  }

  async function* events(
    request: GenerationRequest,
    answer: ScriptedAnswer,
    steps: readonly LoadProgress[],
    signal: AbortSignal,
  ): AsyncGenerator<GenerationEvent> {
    for (const progress of steps) yield { type: 'progress', progress }
    yield* play(answer, request, signal)
  }

  function findPredictor(tag: Tag): TestPredictor {
    const found = predictors.find((one) => one.tag === tag)
    if (found) return found
    const what = `${find(tag, 'tag').tag} is no predictor.`
    throw new InoriginError('not_found', what, { code: 'model_not_found', param: 'tag' })
  }

  const predict: HostService['predict'] = async (tag, inputs, _configuration, caller) => {
    const predictor = findPredictor(tag)
    await load(tag, caller)
    const startedAt = performance.now()
    const outputs = await predictor.predict(inputs)
    return { tag, outputs, latency: performance.now() - startedAt, device: 'wasm' }
  }

  const embed: Host['embed'] = async ({ model, input, dimensions }, caller) => {
    const embedder = findEmbedder(embedders, find(model).tag)
    assertDimensions(embedder, dimensions)
    await load(model, { key: null, signal: caller.signal })
    const rows = await Promise.all(input.map((text) => computeVector(embedder, text)))
    const length = dimensions ?? embedder.dimensions
    const vectors = Float32Array.from(rows.flatMap((row) => row.slice(0, length)))
    async function* vectorEvents(): AsyncGenerator<EmbeddingEvent> {
      const tokens = countWords(input)
      yield { type: 'finish', embeddings: { vectors, dimensions: length, tokens } }
    }
    return { events: vectorEvents() }
  }

  const host: ScriptedHost = {
    authorize: async () => undefined,
    models: async () => [...models.map(toModel), ...embedders.map(toEmbeddingModel)],
    generate,
    countTokens: async (request) => countPromptTokens(request),
    embed,
    ...createResponseStore(() => undefined).methods,
    ...createTestBackground(generate),
    predictor: async (tag) => toRemotePredictor(findPredictor(tag)),
    createPrediction: () => unsupported('files of predictors'),
    createRemotePrediction: async (request, caller) => {
      const { tag, signature } = findPredictor(request.tag)
      return runRemotely({ ...request, tag }, signature, (inputs) =>
        streamPrediction((onEvent) => predict(tag, inputs, undefined, { ...caller, onEvent })),
      )
    },
    resourceInfo: () => unsupported('files of models'),
    resource: () => unsupported('files of models'),
    predict,
    predictNext: () => unsupported('sessions'),
  }
  return { host, requests }
}

/** Returns the host, each of whose methods for HTTP checks the API key first as a page's does. */
export function withAuthorization(host: ScriptedHost, authorize: Authorize): ScriptedHost {
  const guarded = METHODS_WITH_KEY.map((name) => {
    const method = host[name] as (...args: unknown[]) => Promise<unknown>
    const checked = async (...args: unknown[]): Promise<unknown> => {
      authorize(args.at(-1) as Caller)
      return method(...args)
    }
    return [name, checked] as const
  })
  return { ...host, ...(Object.fromEntries(guarded) as unknown as Partial<Host>) }
}

const METHODS_WITH_KEY = (Object.keys(HOST_METHODS) as (keyof Host)[]).filter(
  (name) => name !== 'resourceInfo' && name !== 'resource',
)

/** Returns a function that takes the next answer of the model of the request. */
function createAnswers(models: readonly TestModel[]) {
  const counts = new Map<Tag, number>()
  return async (request: GenerationRequest, onTake: () => void): Promise<ScriptedAnswer> => {
    const { tag, answers } = models.find((one) => one.tag === request.model) as TestModel
    const count = counts.get(tag) ?? 0
    counts.set(tag, count + 1)
    onTake()
    const answer = typeof answers === 'function' ? await answers(request) : answers[count]
    if (answer !== undefined) return answer
    throw scriptError(
      `${tag} has no scripted answer for request ${count + 1}. Add it to \`answers\`.`,
    )
  }
}

function assertModel({ tag, type }: Loadable): void {
  if (type === 'model') return
  const what = `${tag} is a predictor. Call server.predict() instead.`
  throw new InoriginError('not_found', what, { code: 'model_not_found', param: 'model' })
}

function findEmbedder(embedders: readonly TestEmbedder[], tag: Tag): TestEmbedder {
  const found = embedders.find((one) => one.tag === tag)
  if (found) return found
  const what = `${tag} is no embedding model. Add it to \`embedders\`.`
  throw new InoriginError('not_found', what, { code: 'model_not_found', param: 'model' })
}

function assertDimensions({ tag, dimensions }: TestEmbedder, wanted = dimensions): void {
  if (wanted <= dimensions) return
  const what = `dimensions must be at most ${dimensions}, not ${wanted}`
  const why = `the vectors of ${tag} have ${dimensions} numbers.`
  const details = { code: 'invalid_value', param: 'dimensions' } as const
  throw new InoriginError('invalid_request', `${what}: ${why}`, details)
}

async function computeVector({ tag, dimensions, embed }: TestEmbedder, text: string) {
  const vector = await embed(text)
  if (vector.length === dimensions) return vector
  const what = `\`embed\` of ${tag} returned ${vector.length} numbers`
  throw scriptError(`${what}, but its \`dimensions\` is ${dimensions}.`)
}

const toEmbeddingModel = ({ tag, name = tag, dimensions }: TestEmbedder) => ({
  tag,
  name,
  created: CREATED,
  maxInputTokens: DEFAULT_CONTEXT_TOKENS,
  maxOutputTokens: null,
  capabilities: { embeddings: { dimensions } },
})

const toModel = ({ tag, name = tag, maxInputTokens = DEFAULT_CONTEXT_TOKENS }: TestModel) => ({
  tag,
  name,
  created: CREATED,
  maxInputTokens,
  maxOutputTokens: maxInputTokens,
  capabilities: CAPABILITIES,
})

function toRemotePredictor({ tag, name = tag, signature }: TestPredictor) {
  const owner = { username: tag.slice(1).split('/')[0] ?? '', created: CREATED }
  const texts = { description: '', card: '', status: 'active', access: 'public' } as const
  return { tag, owner, name, signature, ...texts }
}

async function unsupported(what: string): Promise<never> {
  throw new InoriginError('invalid_request', `inorigin/testing has no ${what}.`)
}
