/** The host of the test server: its models give scripted answers. */
import { InoriginError } from '../../error.ts'
import { EventHub, LatestValue, loadPaused, toTracedError } from '../../host/models/event-hub.ts'
import { noBackgroundResponse } from '../../host/requests/background-readers.ts'
import type { BackgroundMethods } from '../../host/requests/background.ts'
import { streamPrediction } from '../../host/requests/prediction-stream.ts'
import { ResponseStore } from '../../host/requests/response-store.ts'
import type { Trace } from '../../host/requests/middleware.ts'
import { runRemotely } from '../../predictor/remote/run.ts'
import type {
  AcceptedEvent,
  BackgroundEvent,
  BackgroundResponse,
  Caller,
  EmbeddingEvent,
  GenerationEvent,
  GenerationRequest,
  Host,
  HostService,
  LoadPhase,
  LoadProgress,
  ModelState,
  Tag,
} from '../../types/index.ts'
import { untilAccepted } from '../../values/accepted.ts'
import { SingleFlight, unlessAborted } from '../../values/promises.ts'
import {
  assertOffered,
  countPromptTokens,
  countWords,
  playAnswer,
  type ScriptedAnswer,
  scriptError,
  type TestEmbedder,
  type TestModel,
  type TestPredictor,
} from './answers.ts'

interface ScriptedOptions {
  models: readonly TestModel[]
  predictors: readonly TestPredictor[]
  embedders: readonly TestEmbedder[]
  /** Resolves when the tag is loaded. Rejects with `not_found` for an unknown one. */
  load(tag: Tag, caller: Caller<LoadProgress>): Promise<void>
  /** Throws `not_found` for an unknown tag. The error names the field of the body: `param`. */
  find(tag: Tag, param?: TagParam): Loadable
  /** Yields the events of an answer. Default: those of its words. */
  play?: typeof playAnswer
}

export type TagParam = 'model' | 'tag'
type ScriptedHost = Host & Pick<HostService, 'predict' | 'predictNext'>

const CREATED = '2026-01-01T00:00:00Z'
const DEFAULT_CONTEXT_TOKENS = 4_096
const CAPABILITIES = { tools: true, thinking: true, imageInput: true, structuredOutputs: true }

export function createScriptedHost({
  models,
  predictors,
  embedders,
  load,
  find,
  play = playAnswer,
}: ScriptedOptions) {
  const requests: GenerationRequest[] = []
  const nextAnswer = createAnswers(models)

  async function* generate(
    request: GenerationRequest,
    { signal }: Caller,
  ): AsyncGenerator<AcceptedEvent | GenerationEvent> {
    const { tag, type } = find(request.model)
    if (type !== 'model')
      throw notFound(`${tag} is a predictor. Call server.predict() instead.`, 'model')
    const answer = await nextAnswer(request, () => requests.push(structuredClone(request)))
    // A later error would be in a body with status 200, which most clients do not check.
    assertOffered(answer, request)
    const steps: LoadProgress[] = []
    await load(tag, { key: null, signal, onEvent: (step) => steps.push(step) })
    yield { type: 'accepted', ignored: [] }
    for (const progress of steps) yield { type: 'progress', progress }
    yield* play(answer, request, signal)
  }

  function findPredictor(tag: Tag): TestPredictor {
    const found = predictors.find((one) => one.tag === tag)
    if (found) return found
    throw notFound(`${find(tag, 'tag').tag} is no predictor.`, 'tag')
  }

  const predict: HostService['predict'] = async (tag, inputs, _configuration, caller) => {
    const predictor = findPredictor(tag)
    await load(tag, caller)
    const startedAt = performance.now()
    const outputs = await predictor.predict(inputs)
    return { tag, outputs, latency: performance.now() - startedAt, device: 'wasm' }
  }

  const embed: Host['embed'] = async ({ model, input, dimensions }, caller) => {
    const { tag } = find(model)
    const embedder = embedders.find((one) => one.tag === tag)
    if (!embedder) throw notFound(`${tag} is no embedding model. Add it to \`embedders\`.`, 'model')
    const length = dimensions ?? embedder.dimensions
    assertDimensions(embedder, length)
    await load(model, { key: null, signal: caller.signal })
    const rows = await Promise.all(input.map((text) => computeVector(embedder, text)))
    const vectors = Float32Array.from(rows.flatMap((row) => row.slice(0, length)))
    async function* vectorEvents(): AsyncGenerator<EmbeddingEvent> {
      const tokens = countWords(input)
      yield { type: 'finish', embeddings: { vectors, dimensions: length, tokens } }
    }
    return { events: vectorEvents() }
  }

  const open: Host['generate'] = async (...args) => ({ events: generate(...args) })
  const host: ScriptedHost = {
    authorize: async () => undefined,
    models: async () => [...models.map(toModel), ...embedders.map(toEmbeddingModel)],
    generate: open,
    countTokens: async (request) => countPromptTokens(request),
    embed,
    rerank: () => unsupported('scores of documents'),
    speak: () => unsupported('speech'),
    ...new ResponseStore().methods,
    ...createTestBackground(open),
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

const notFound = (what: string, param: TagParam) =>
  new InoriginError('not_found', what, { code: 'model_not_found', param })

function assertDimensions({ tag, dimensions }: TestEmbedder, wanted: number): void {
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

function toEmbeddingModel({ tag, name = tag, dimensions }: TestEmbedder) {
  const limits = { maxInputTokens: DEFAULT_CONTEXT_TOKENS, maxOutputTokens: null }
  return { tag, name, created: CREATED, ...limits, capabilities: { embeddings: { dimensions } } }
}

function toModel({ tag, name = tag, maxInputTokens = DEFAULT_CONTEXT_TOKENS }: TestModel) {
  const limits = { maxInputTokens, maxOutputTokens: maxInputTokens }
  return { tag, name, created: CREATED, ...limits, capabilities: CAPABILITIES }
}

function toRemotePredictor({ tag, name = tag, signature }: TestPredictor) {
  const owner = { username: tag.slice(1).split('/')[0] ?? '', created: CREATED }
  const texts = { description: '', card: '', status: 'active', access: 'public' } as const
  return { tag, owner, name, signature, ...texts }
}

async function unsupported(what: string): Promise<never> {
  throw new InoriginError('invalid_request', `inorigin/testing has no ${what}.`)
}

/** A background response, which ends with its last event or with its deletion. */
class Job {
  readonly key: string | null
  readonly response: BackgroundResponse
  readonly events: BackgroundEvent[] = [{ type: 'queued' }]
  readonly running = new AbortController()
  readonly #count = new LatestValue(1)

  constructor(key: string | null, response: BackgroundResponse) {
    this.key = key
    this.response = response
  }

  async run(events: AsyncIterable<BackgroundEvent>): Promise<void> {
    try {
      for await (const event of events)
        if (event.type !== 'progress' && event.type !== 'heartbeat') this.#add(event)
    } catch (thrown) {
      const error = InoriginError.from(thrown).toRecord()
      this.finish({ type: 'finish', reason: 'failed', error })
    }
  }

  /** Ends the response. One that is finished stays as it is. */
  finish(last: BackgroundEvent): void {
    this.#add(last)
    this.running.abort()
  }

  delete(): void {
    this.running.abort()
    this.#count.fail(noBackgroundResponse())
  }

  async *read(skippedEvents: number, signal: AbortSignal): AsyncGenerator<BackgroundEvent> {
    let next = skippedEvents
    for await (const _ of this.#count.read(signal)) {
      // Events may be added while the reader takes the ones before.
      for (; next < this.events.length; next += 1) yield this.events[next] as BackgroundEvent
      if (this.#isFinished) return
    }
  }

  get #isFinished(): boolean {
    return this.events.at(-1)?.type === 'finish'
  }

  #add(event: BackgroundEvent): void {
    if (this.#isFinished) return
    const isEnd = event.type === 'finish' && 'usage' in event
    this.events.push(isEnd ? { ...event, completedAt: Math.floor(Date.now() / 1000) } : event)
    this.#count.set(this.events.length)
  }
}

/** Creates the methods. Each response is computed by `generate`, from its request on. */
export function createTestBackground(generate: Host['generate']): BackgroundMethods {
  const jobs = new Map<string, Job>()

  function find(id: string, { key }: Caller): Job | undefined {
    const job = jobs.get(id)
    return job?.key === key ? job : undefined
  }

  return {
    async createBackground(response, { key }) {
      const job = new Job(key, response)
      const generation = await generate(response.request, { key, signal: job.running.signal })
      const { ignored, events } = await untilAccepted(generation.events)
      jobs.set(response.id, job)
      void job.run(events)
      return { ignored }
    },
    async getBackground(id, caller) {
      const job = find(id, caller)
      return job ? { response: job.response, events: [...job.events] } : null
    },
    async followBackground(id, skippedEvents, caller) {
      const job = find(id, caller)
      if (!job) throw noBackgroundResponse()
      return { response: job.response, events: job.read(skippedEvents, caller.signal) }
    },
    async cancelBackground(id, caller) {
      const job = find(id, caller)
      job?.finish({ type: 'finish', reason: 'cancelled' })
      return job !== undefined
    },
    async deleteBackground(id, caller) {
      const job = find(id, caller)
      job?.delete()
      return job !== undefined && jobs.delete(id)
    },
  }
}

/** A model or predictor of the test, which can be loaded. */
export interface Loadable {
  tag: Tag
  name: string
  type: 'model' | 'predictor'
  bytes: number
  /** Runs in the middle of the download. */
  load: (signal: AbortSignal) => Promise<void> | void
}

export function createLoads(all: readonly Loadable[], trace: Trace) {
  const progress = new EventHub<LoadProgress>()
  const singleFlight = new SingleFlight()
  const loaded = new Set<Tag>()
  const stored = new Set<Tag>()
  const loading = new Map<Tag, AbortController>()

  async function start({ tag, bytes, load: run }: Loadable, signal: AbortSignal): Promise<void> {
    const report = (phase: LoadPhase, loadedBytes = bytes) => {
      const transfer = { loadedBytes, totalBytes: bytes, bytesPerSecond: 0, remainingSeconds: null }
      progress.report({ tag, phase, ...transfer })
    }
    const load = toTraced(tag)
    const pausing = new AbortController()
    loading.set(tag, pausing)
    trace.report({ ...load, status: 'started' })
    try {
      const either = AbortSignal.any([signal, pausing.signal])
      if (!stored.has(tag)) report('download', Math.floor(bytes / 2))
      await unlessAborted(Promise.resolve(run(either)), either, InoriginError.from)
      stored.add(tag)
      for (const phase of ['download', 'compile', 'warm'] as const) report(phase)
      loaded.add(tag)
      loading.delete(tag)
      report('ready')
      trace.report({ ...load, status: 'ready' })
    } catch (thrown) {
      loading.delete(tag)
      trace.report({ ...load, status: 'ended', error: toTracedError(thrown) })
      throw thrown
    }
  }

  function statusOf(tag: Tag): ModelState['status'] {
    if (loaded.has(tag)) return 'loaded'
    return loading.has(tag) ? 'loading' : stored.has(tag) ? 'stored' : 'remote'
  }

  return {
    states: () => all.map((item) => toState(item, statusOf(item.tag))),
    progress: (signal: AbortSignal) => progress.read([], signal),
    /** Resolves when the tag is loaded. All who wait for it share one load. */
    async load(item: Loadable, signal: AbortSignal, onProgress?: (step: LoadProgress) => void) {
      const unsubscribe = progress.subscribe((step) => step.tag === item.tag && onProgress?.(step))
      const work = (shared: AbortSignal) => start(item, shared)
      try {
        if (!loaded.has(item.tag)) await singleFlight.run(item.tag, work, signal)
      } finally {
        unsubscribe()
      }
    },
    pause: (tag: Tag) => loading.get(tag)?.abort(loadPaused(tag)),
    unload(tag: Tag): void {
      const error = new InoriginError('unavailable', `${tag} was unloaded.`, { code: 'unloaded' })
      loading.get(tag)?.abort(error)
      if (!loaded.delete(tag)) return
      trace.report({ ...toTraced(tag), status: 'ended', error: toTracedError(error) })
    },
    remove: (tag: Tag) => stored.delete(tag),
  }
}

const toTraced = (tag: Tag) =>
  ({ type: 'load', tag, implementation: 'test', device: 'wasm' }) as const

function toState({ tag, type, name, bytes }: Loadable, status: ModelState['status']): ModelState {
  const about = { tag, type, name, status, bytes, memory: bytes }
  return { ...about, users: status === 'loading' ? 1 : 0, device: 'wasm', servedBy: 'local' }
}
