/** Entry of the dedicated worker that runs one language model or predictor. */
import { isEmbedder } from '../catalog/find-entry.ts'
import type { Embedder } from '../catalog/schema.ts'
import type { GpuVerdict } from '../device/gpu-verdict.ts'
import type { Engine, Files } from '../engine/engine.ts'
import { openOnnx } from '../engine/onnx/index.ts'
import { openTrusted } from '../engine/onnx/selftest/open.ts'
import { InoriginError } from '../error.ts'
import { generate } from '../generation/generate.ts'
import { pace } from '../generation/pace.ts'
import { plan } from '../generation/plan.ts'
import { answer, type Answers } from '../link/answer.ts'
import type { Reply } from '../link/ask.ts'
import { holdLife } from '../link/life.ts'
import type {
  HostToModel,
  ModelCalls,
  ModelSetup,
  ModelStreams,
  ModelToHost,
  PredictorFiles,
  Sender,
} from '../link/protocol.ts'
import { embedTexts, tokenizeTexts } from '../predictor/embed.ts'
import { openPredictor, type OpenPredictor } from '../predictor/open-predictor.ts'
import { closeImages } from '../predictor/transferable-inputs.ts'
import type {
  EmbeddingRequest,
  Embeddings,
  GenerationEvent,
  GenerationRequest,
} from '../types/index.ts'
import { measure } from './measure.ts'
import { createQueue } from './queue.ts'

/**
 * Queue of this model. It runs up to 4 requests concurrently and rejects those beyond its limits.
 */
const queue = createQueue({ served: 4, perClient: 16, total: 64 })
/**
 * Longest prompt whose tokens are counted, in multiples of the context. Clients count long prompts
 * in order to shorten them. Longer ones would take seconds.
 */
const COUNTED = 4
/** Request with which a language model is measured. */
const SAMPLE: GenerationRequest = {
  model: '',
  messages: [{ role: 'user', content: 'Count to ten.' }],
  maxTokens: 16,
  sampling: { temperature: 0 },
  stop: [],
}

let model: { engine: Engine; setup: ModelSetup } | undefined
let predictor: OpenPredictor | undefined
let embedder: Embedder | undefined
let loaded: (() => void) | undefined
const weights = new Promise<void>((resolve) => (loaded = resolve))

const answers: Answers<ModelCalls, ModelStreams> = {
  // This worker ends with the host's worker, which started it, so it needs no life of its own.
  life: null,
  calls: {
    openModel: ([setup]) => openModel(setup),
    loadModel: ([files], { signal }, tell) => loadModel(files, signal, () => tell('warm')),
    countTokens: async ([asked]) => (await prepare(asked, COUNTED)).planned.prompt.tokens.length,
    openPredictor: ([setup], { signal }) => loadPredictor(setup, signal),
    measure: (_args, { signal }) => measure(runOf(signal), signal),
    predict: ([inputs], { signal }) => {
      if (!predictor) throw notOpen()
      // The inputs were copied when they crossed the port, so the caller keeps its own.
      return predictor.predict(inputs, signal).finally(() => closeImages(inputs))
    },
  },
  streams: {
    generate: ([request, sender], { signal }) => accept(request, sender, signal),
    embed: ([request, sender], { signal }) => acceptTexts(request, sender, signal),
  },
}

/** Calls that are allowed over lent ports. */
const lent: Answers<Pick<ModelCalls, 'predict'>, object> = {
  life: null,
  calls: { predict: answers.calls.predict },
  streams: {},
}
let direct = 0

self.onmessage = ({ data, ports: [port] }: MessageEvent<HostToModel>) => {
  if (data.type === 'ping') return toHost({ type: 'pong' })
  if (!port) return
  if (data.type === 'port') void answer(port, answers)
  else port.onmessage = ({ ports: [request] }) => request && void answerDirect(request)
}

if (navigator.locks) {
  void holdLife(navigator.locks, 'model').then((life) => toHost({ type: 'life', life }))
}

/**
 * Answers a request that a page sent over a lent port. The host does not see such requests, so it
 * is notified of their number: it must not evict the model meanwhile.
 */
async function answerDirect(port: MessagePort): Promise<void> {
  tellUse((direct += 1))
  await answer(port, lent)
  tellUse((direct -= 1))
}

function tellUse(requests: number): void {
  toHost({ type: 'use', requests })
}

function toHost(message: ModelToHost): void {
  self.postMessage(message)
}

async function openModel(setup: ModelSetup): Promise<void> {
  // WebLLM is large, so it is only loaded for models that need it.
  const open =
    setup.engine === 'mlc' ? (await import('../engine/webllm/index.ts')).openWebllm : openOnnx
  model = { engine: await open(setup), setup }
}

async function loadModel(
  files: Files,
  signal: AbortSignal,
  onWarm: () => void,
): Promise<GpuVerdict | null> {
  if (!model) throw notOpen()
  const { engine } = model
  await engine.load(files, signal, onWarm)
  loaded?.()
  return engine.verdict ?? null
}

/** Queues texts after they have been read. Concurrent requests take turns after each batch. */
async function acceptTexts(
  request: EmbeddingRequest,
  { client }: Sender,
  signal: AbortSignal,
): Promise<Reply<void, Embeddings>> {
  if (!predictor || !embedder) throw notOpen()
  const [opened, entry] = [predictor, embedder]
  const ticket = await queue.admit(client, signal)
  const rows = await tokenizeTexts(opened, entry, request, signal).catch((error: unknown) => {
    ticket.leave()
    throw error
  })
  return { result: undefined, events: events() }

  async function* events(): AsyncGenerator<Embeddings> {
    try {
      ticket.confirm()
      await ticket.turn
      yield await embedTexts(opened, entry, rows, request.dimensions, signal)
    } finally {
      ticket.leave()
    }
  }
}

async function loadPredictor(
  setup: PredictorFiles,
  signal: AbortSignal,
): Promise<GpuVerdict | null> {
  const { device } = setup.implementation
  const verdict = device === 'webgpu' ? await tryGpu(setup, signal) : null
  predictor = await openPredictor({ ...setup, device }, signal)
  embedder = isEmbedder(setup.entry) ? setup.entry : undefined
  return verdict
}

/**
 * Resolves with the verdict on the GPU. Rejects with `gpu_untrusted` if the GPU computes wrong
 * numbers with the features that the predictor needs.
 */
async function tryGpu(
  { implementation, runtime: folder, verdict }: PredictorFiles,
  signal: AbortSignal,
): Promise<GpuVerdict> {
  const features = implementation.requires?.features
  const { gpu, runtime, ...tried } = await openTrusted({ folder, features, verdict }, signal)
  runtime.release()
  gpu.destroy()
  return tried.verdict
}

/**
 * Returns a function that runs the loaded model once on sample inputs. It resolves with the number
 * of generated tokens, or with 1 for a predictor.
 */
function runOf(signal: AbortSignal): () => Promise<number> {
  if (predictor) {
    const { predict, sample } = predictor
    const inputs = sample()
    return () => predict(inputs, signal).then(() => 1)
  }
  return async () => {
    const { events } = await accept(SAMPLE, { client: '', partition: 'measure' }, signal)
    let tokens = 1
    for await (const event of events) {
      if (event.type === 'finish') tokens = Math.max(1, event.usage.completionTokens)
    }
    return tokens
  }
}

/**
 * Resolves with the request, completed with the model's defaults, and with its generation plan.
 * Rejects if the request cannot be answered. The prompt may be as long as `contexts` contexts.
 */
async function prepare(asked: GenerationRequest, contexts = 1) {
  if (!model) throw notOpen()
  const { engine, setup } = model
  const { maxOutputTokens, toolFormat, reasons } = setup
  const reasoningBudget = asked.reasoningBudget ?? setup.reasoningBudget
  const request = { ...asked, reasoningBudget }
  const reader: Engine = { ...engine, prepare: (spoken) => engine.prepare(spoken, contexts) }
  const planned = await plan(reader, request, { toolFormat, reasons })
  return { engine, request, planned, maxOutputTokens }
}

/** Validates and queues a request. The weights need not be loaded yet. */
async function accept(
  asked: GenerationRequest,
  { client, partition }: Sender,
  signal: AbortSignal,
): Promise<Reply<{ ignored: string[] }, GenerationEvent>> {
  const { engine, request, planned, maxOutputTokens } = await prepare(asked)
  const ticket = await queue.admit(client, signal)
  // A budget of 0 is never ignored: a model without reasoning complies with it.
  const ignored = asked.reasoningBudget && !planned.reasoning ? ['reasoningBudget'] : []
  return { result: { ignored }, events: events() }

  async function* events(): AsyncGenerator<GenerationEvent> {
    try {
      ticket.confirm()
      await ticket.turn
      await weights
      yield* pace(generate(engine, request, { maxOutputTokens, plan: planned, partition }, signal))
    } finally {
      ticket.leave()
    }
  }
}

function notOpen(): InoriginError {
  return new InoriginError('internal', 'This worker received a request before its model was open.')
}
