/** Entry of the dedicated worker that runs one language model or predictor. */
import { isEmbedder, isReranker, isSpeaker } from '../catalog/find-entry.ts'
import type { Embedder, Reranker, Speaker } from '../catalog/schema.ts'
import type { GpuComparison, GpuVerdict } from '../device/gpu-verdict.ts'
import type { Engine, Files } from '../engine/engine.ts'
import { openOnnx } from '../engine/onnx/index.ts'
import { openTrusted } from '../engine/onnx/selftest/open.ts'
import { benchmarkThreads } from '../engine/onnx/thread-benchmark.ts'
import { InoriginError } from '../error.ts'
import { createCoalescer } from '../generation/coalesce.ts'
import { type GenerationOptions, runGeneration } from '../generation/generate.ts'
import type { ImageOptions } from '../generation/images.ts'
import { planGeneration } from '../generation/plan.ts'
import { answer } from '../link/answer.ts'
import { holdLivenessLock } from '../link/locks.ts'
import type { Carried } from '../predictor/carry.ts'
import { embedTexts, tokenizeTexts } from '../predictor/embed.ts'
import { openPredictor, type OpenPredictor } from '../predictor/open-predictor.ts'
import { scorePairs, tokenizePairs } from '../predictor/rerank.ts'
import { closeImages } from '../predictor/transferable-inputs.ts'
import { DIRECT_METHODS } from '../types/control.ts'
import type {
  Caller,
  DirectPredictor,
  EmbeddingRequest,
  Embeddings,
  EventStream,
  GenerationRequest,
  PredictionResult,
  Ranking,
  RerankRequest,
  TranscriptionEvent,
  SpeechPart,
  SpeechRequest,
} from '../types/index.ts'
import type { HostToModel, ModelToHost } from './messages.ts'
import {
  type AcceptedGeneration,
  MODEL_METHODS,
  type ModelService,
  type ModelSetup,
  type PredictorFiles,
  type SoundRequest,
} from './models/model-service.ts'
import { Queue } from './requests/queue.ts'

/**
 * Queue of this model. It runs up to 4 requests concurrently and rejects those beyond its limits.
 */
const queue = new Queue({ maxRunning: 4, maxPerClient: 16, maxTotal: 64 })
/**
 * Longest prompt whose tokens are counted, in multiples of the context. Clients count long prompts
 * in order to shorten them. Longer ones would take seconds.
 */
const MAX_COUNTED_CONTEXTS = 4
/** Request with which a language model is measured. */
const MEASUREMENT_REQUEST: GenerationRequest = {
  model: '',
  messages: [{ role: 'user', content: 'Count to ten.' }],
  maxTokens: 16,
  sampling: { temperature: 0 },
  stop: [],
}

let model: { engine: Engine; setup: ModelSetup } | undefined
let predictor: OpenPredictor | undefined
let embedder: Embedder | undefined
let reranker: Reranker | undefined
let speaker: Speaker | undefined
let resolveWeights: (() => void) | undefined
const weightsLoaded = new Promise<void>((resolve) => (resolveWeights = resolve))

const service: ModelService = {
  openModel,
  loadModel,
  openPredictor: loadPredictor,
  predict: (inputs, { signal, onEvent }) =>
    runPredictor(inputs, (opened) => opened.predict(inputs, signal, (text) => onEvent?.({ text }))),
  predictNext: (inputs, state, { signal }) =>
    // Only `predictNext` makes states, and pages return them unchanged.
    runPredictor(inputs, (opened) => opened.predictNext(inputs, state as Carried | null, signal)),
  generate: queueGeneration,
  countTokens: async (received) =>
    (await prepare(received, { decodes: false }, MAX_COUNTED_CONTEXTS)).planned.prompt.tokens
      .length,
  embed: queueEmbedding,
  rerank: queueRanking,
  transcribe: queueTranscription,
  speak: queueSpeech,
  measure: (inputs, { signal }) => measure(createMeasuredRun(inputs, signal), signal),
  measureThreads: benchmarkThreads,
}

let directRequests = 0

self.onmessage = ({ data, ports: [port] }: MessageEvent<HostToModel>) => {
  if (data.type === 'ping') return postToHost({ type: 'pong' })
  if (!port) return
  // This worker ends with the host's worker, which started it, so it needs no liveness lock.
  if (data.type === 'port') void answer(port, service, MODEL_METHODS)
  else port.onmessage = ({ ports: [request] }) => request && void answerDirectRequest(request)
}

if (navigator.locks) {
  void holdLivenessLock(navigator.locks, 'model').then((life) => postToHost({ type: 'life', life }))
}

/**
 * Answers a request that a page sent over a direct port. The host does not see such requests, so it
 * is notified of their number: it must not evict the model meanwhile.
 */
async function answerDirectRequest(port: MessagePort): Promise<void> {
  postToHost({ type: 'use', requests: (directRequests += 1) })
  await answer<DirectPredictor>(port, service, DIRECT_METHODS)
  postToHost({ type: 'use', requests: (directRequests -= 1) })
}

function postToHost(message: ModelToHost): void {
  self.postMessage(message)
}

async function openModel(setup: ModelSetup): Promise<void> {
  // WebLLM is large, so it is only loaded for models that need it.
  const open =
    setup.engine === 'mlc' ? (await import('../engine/webllm/index.ts')).openWebllm : openOnnx
  const onEncoderComparison = (comparison: GpuComparison): void =>
    postToHost({ type: 'compared', comparison })
  model = { engine: await open({ ...setup, onEncoderComparison }), setup }
  performance.mark('inorigin:tokenizer')
}

async function loadModel(
  weights: Files,
  { signal, onEvent }: Caller<'warm'>,
): Promise<GpuVerdict | null> {
  if (!model) throw notOpen()
  const { engine } = model
  await engine.load(weights, signal, () => onEvent?.('warm'))
  resolveWeights?.()
  return engine.verdict ?? null
}

/** Queues texts after they have been read. Concurrent requests take turns after each batch. */
async function queueEmbedding(
  request: EmbeddingRequest,
  { client = '', signal }: Caller,
): Promise<EventStream<Embeddings>> {
  if (!predictor || !embedder) throw notOpen()
  const [opened, entry] = [predictor, embedder]
  const ticket = await queue.admit(client, signal)
  const rows = await tokenizeTexts(opened, entry, request, signal).catch((error: unknown) => {
    ticket.release()
    throw error
  })
  return { events: events() }

  async function* events(): AsyncGenerator<Embeddings> {
    try {
      ticket.confirm()
      await ticket.granted
      yield await embedTexts(opened, entry, rows, request.dimensions, signal)
    } finally {
      ticket.release()
    }
  }
}

/** Queues pairs after they have been read, as texts are. */
async function queueRanking(
  request: RerankRequest,
  { client = '', signal }: Caller,
): Promise<EventStream<Ranking>> {
  if (!predictor || !reranker) throw notOpen()
  const [opened, entry] = [predictor, reranker]
  const ticket = await queue.admit(client, signal)
  const rows = await tokenizePairs(opened, entry, request, signal).catch((error: unknown) => {
    ticket.release()
    throw error
  })
  return { events: events() }

  async function* events(): AsyncGenerator<Ranking> {
    try {
      ticket.confirm()
      await ticket.granted
      yield await scorePairs(opened, entry, rows, signal)
    } finally {
      ticket.release()
    }
  }
}

/** Queues speech. Concurrent requests wait for each other. */
async function queueTranscription(
  { sound, ...options }: SoundRequest,
  { client = '', signal }: Caller,
): Promise<EventStream<TranscriptionEvent>> {
  if (!predictor) throw notOpen()
  const opened = predictor
  const ticket = await queue.admit(client, signal)
  return { events: events() }

  async function* events(): AsyncGenerator<TranscriptionEvent> {
    try {
      ticket.confirm()
      await ticket.granted
      yield* opened.transcribe(sound, options, signal)
    } finally {
      ticket.release()
    }
  }
}

/** Queues a text after it has been read. Concurrent requests take turns after each sentence. */
async function queueSpeech(
  request: SpeechRequest,
  { client = '', signal }: Caller,
): Promise<EventStream<SpeechPart>> {
  if (!predictor || !speaker) throw notOpen()
  const [opened, entry] = [predictor, speaker]
  // Few models speak, so the code is only loaded for them.
  const { speakText } = await import('../predictor/speak.ts')
  const speech = speakText(opened, entry, request, signal)
  const ticket = await queue.admit(client, signal)
  return { events: events() }

  async function* events(): AsyncGenerator<SpeechPart> {
    try {
      ticket.confirm()
      await ticket.granted
      yield* speech
    } finally {
      ticket.release()
    }
  }
}

async function loadPredictor(
  setup: PredictorFiles,
  { signal }: Caller,
): Promise<GpuVerdict | null> {
  const { device } = setup.implementation
  const verdict = device === 'webgpu' ? await testGpu(setup, signal) : null
  const onComparison = setup.mustCompare
    ? (comparison: GpuComparison) => postToHost({ type: 'compared', comparison })
    : undefined
  predictor = await openPredictor({ ...setup, device }, signal, onComparison)
  embedder = isEmbedder(setup.entry) ? setup.entry : undefined
  reranker = isReranker(setup.entry) ? setup.entry : undefined
  speaker = isSpeaker(setup.entry) ? setup.entry : undefined
  return verdict
}

async function runPredictor<Result extends PredictionResult>(
  inputs: Record<string, unknown>,
  run: (opened: OpenPredictor) => Promise<Result>,
): Promise<Result> {
  if (!predictor) throw notOpen()
  // The inputs were copied when they crossed the port, so the caller keeps its own.
  return run(predictor).finally(() => closeImages(inputs))
}

/**
 * Resolves with the verdict on the GPU. Rejects with `gpu_untrusted` if the GPU computes wrong
 * numbers with the features that the predictor needs.
 */
async function testGpu(
  { implementation, runtime: folder, verdict }: PredictorFiles,
  signal: AbortSignal,
): Promise<GpuVerdict> {
  const features = implementation.requires?.features
  const { gpu, runtime, ...tested } = await openTrusted({ folder, features, verdict }, signal)
  runtime.release()
  gpu.destroy()
  return tested.verdict
}

/**
 * Returns a function that runs the loaded model once: a predictor on the inputs, a language model on
 * a fixed prompt. It resolves with the number of generated tokens, or with 1 for a predictor.
 */
function createMeasuredRun(
  inputs: Record<string, unknown>,
  signal: AbortSignal,
): () => Promise<number> {
  if (predictor) {
    const measured = predictor
    return () => measured.predict(inputs, signal).then(() => 1)
  }
  return async () => {
    const { events } = await queueGeneration(MEASUREMENT_REQUEST, { key: 'measure', signal })
    let tokens = 1
    for await (const event of events) {
      if (event.type === 'finish') tokens = Math.max(1, event.usage.completionTokens)
    }
    return tokens
  }
}

/** Maximum number of measured runs. The first run is a warm-up and is not measured. */
const MAX_MEASURED_RUNS = 5

/** Time in milliseconds after which no further run is started. */
const MEASURE_BUDGET_MS = 600

/**
 * Resolves with the duration of the fastest of a few runs, in milliseconds for one unit of work.
 * `run` resolves with its number of units. Other load can only slow a run, so the minimum counts.
 */
export async function measure(run: () => Promise<number>, signal: AbortSignal): Promise<number> {
  await run()
  const start = performance.now()
  let fastest = Infinity
  for (let count = 0; count < MAX_MEASURED_RUNS; count += 1) {
    signal.throwIfAborted()
    const before = performance.now()
    const units = await run()
    const after = performance.now()
    fastest = Math.min(fastest, (after - before) / units)
    if (after - start > MEASURE_BUDGET_MS) break
  }
  return fastest
}

/**
 * Resolves with the request, completed with the model's defaults, and with its generation plan.
 * Rejects if the request cannot be answered. The prompt may be as long as `contexts` contexts.
 */
async function prepare(received: GenerationRequest, images: ImageOptions, contexts = 1) {
  if (!model) throw notOpen()
  const { engine, setup } = model
  const { maxOutputTokens, toolFormat, reasons, imageDetail } = setup
  const reasoningBudget = received.reasoningBudget ?? setup.reasoningBudget
  const request = { ...received, reasoningBudget }
  const traits = { toolFormat, reasons, imageDetail }
  const planned = await planGeneration(engine, request, traits, { ...images, contexts })
  return { engine, request, planned, maxOutputTokens }
}

/** Validates and queues a request. The weights need not be loaded yet. */
async function queueGeneration(
  received: GenerationRequest,
  { key, client = '', signal }: Caller,
): Promise<AcceptedGeneration> {
  const partition = key ?? ''
  const { engine, request, planned, maxOutputTokens } = await prepare(received, { partition })
  const ticket = await queue.admit(client, signal)
  // A budget of 0 is never ignored: a model without reasoning complies with it.
  const ignored = [...planned.loosened, ...planned.unread]
  if (received.reasoningBudget && !planned.reasoning) ignored.push('reasoningBudget')
  const options: GenerationOptions = {
    maxOutputTokens,
    plan: planned,
    partition,
    coalescer: createCoalescer(),
    async waitForTurn() {
      ticket.confirm()
      await ticket.granted
      await weightsLoaded
      return ticket.release
    },
  }
  return { ignored, events: runGeneration(engine, request, options, signal) }
}

function notOpen(): InoriginError {
  return new InoriginError('internal', 'This worker received a request before its model was open.')
}
