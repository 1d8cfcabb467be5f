/** The host of the test server: its models give scripted answers. */
import { InoriginError } from '../../error.ts'
import { createResponseStore } from '../../host/requests/response-store.ts'
import { streamPrediction } from '../../host/requests/prediction-stream.ts'
import { runRemotely } from '../../predictor/remote/run.ts'
import type {
  Caller,
  Generation,
  GenerationEvent,
  GenerationRequest,
  Host,
  HostService,
  LoadProgress,
  Tag,
} from '../../types/index.ts'
import { countPromptTokens, playAnswer, scriptError, type ScriptedAnswer } from './answers.ts'
import type { Loadable } from './loads.ts'
import type { TestModel, TestPredictor } from './options.ts'

interface ScriptedOptions {
  models: readonly TestModel[]
  predictors: readonly TestPredictor[]
  /** Resolves when the tag is loaded. Rejects with `not_found` for an unknown one. */
  load(tag: Tag, caller: Caller<LoadProgress>): Promise<void>
  find(tag: Tag): Loadable
}

/** Date on which the models of a test were added. */
const CREATED = '2026-01-01T00:00:00Z'
const DEFAULT_CONTEXT_TOKENS = 4_096

const CAPABILITIES = { tools: true, thinking: true, imageInput: true, structuredOutputs: true }

export function createScriptedHost({ models, predictors, load, find }: ScriptedOptions) {
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
    yield* playAnswer(answer, request, signal)
  }

  function findPredictor(tag: Tag): TestPredictor {
    const found = predictors.find((one) => one.tag === tag)
    if (found) return found
    throw new InoriginError('not_found', `There is no predictor ${find(tag).tag}.`)
  }

  const predict: HostService['predict'] = async (tag, inputs, _configuration, caller) => {
    const predictor = findPredictor(tag)
    await load(tag, caller)
    const startedAt = performance.now()
    const outputs = await predictor.predict(inputs)
    return { tag, outputs, latency: performance.now() - startedAt, device: 'wasm' }
  }

  const host: Host & Pick<HostService, 'predict' | 'predictNext'> = {
    authorize: async () => undefined,
    models: async () => models.map(toModel),
    generate,
    countTokens: async (request) => countPromptTokens(request),
    embed: () => unsupported('embeddings'),
    ...createResponseStore(() => undefined).methods,
    createBackground: () => unsupported('background responses'),
    getBackground: async () => null,
    followBackground: () => unsupported('background responses'),
    cancelBackground: async () => false,
    deleteBackground: async () => false,
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
