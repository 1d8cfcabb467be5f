/** Defines the calls that the host makes to a model worker. */
import type { Implementation } from '../../catalog/schema.ts'
import type { GpuVerdict } from '../../device/gpu-verdict.ts'
import type { EngineSetup, Files } from '../../engine/engine.ts'
import type { ThreadBenchmarkSetup } from '../../engine/onnx/thread-benchmark.ts'
import type { PredictorSetup } from '../../predictor/open-predictor.ts'
import type {
  AcceptedEvent,
  Caller,
  DirectPredictor,
  EmbeddingRequest,
  Embeddings,
  EventStream,
  GenerationEvent,
  GenerationRequest,
  MethodTable,
  Ranking,
  RerankRequest,
  SpeechPart,
  SpeechRequest,
} from '../../types/index.ts'

/** Parameters with which a model worker opens a language model. */
export interface ModelSetup extends EngineSetup {
  engine: Implementation['engine']
  /** Maximum number of tokens of one completion. */
  maxOutputTokens: number
  /** Tool call format of the model, if the catalog names one. */
  toolFormat: string | undefined
  /** `true` if the model reasons. Default: detected from its chat template. */
  reasons: boolean | undefined
  /** Maximum number of reasoning tokens of a request that does not set one. */
  reasoningBudget: number
  /** Detail of images that request none. Default: `low`. */
  imageDetail: 'low' | 'high' | undefined
}

/** Parameters with which a model worker opens a predictor. */
export interface PredictorFiles extends Pick<
  PredictorSetup,
  'entry' | 'implementation' | 'files' | 'runtime' | 'threads'
> {
  /** Result of the GPU self-test. Default: the worker runs the self-test. */
  verdict: GpuVerdict | undefined
  /** `true` to compare the first outputs of the GPU with those of the CPU. */
  mustCompare: boolean
}

/** A generation that the model worker has accepted. */
export type AcceptedGeneration = EventStream<GenerationEvent> & Pick<AcceptedEvent, 'ignored'>

/** The methods of a model worker. The watchdog knows the time that each of them may take. */
export interface ModelService extends DirectPredictor {
  /** Opens a language model's tokenizer and chat template. */
  openModel(setup: ModelSetup, caller: Caller): Promise<void>
  /**
   * Loads the weights, and sends `warm` when the warm-up starts. Requests that were accepted
   * earlier wait for it. Resolves with the result of the GPU self-test.
   */
  loadModel(weights: Files, caller: Caller<'warm'>): Promise<GpuVerdict | null>
  /** Opens a predictor. Resolves with the result of the GPU self-test. */
  openPredictor(setup: PredictorFiles, caller: Caller): Promise<GpuVerdict | null>
  /**
   * Accepts a request when its prompt is tokenized, fits into the context, and is queued. Requests
   * share cached prefixes only with others that have the same API key.
   */
  generate(request: GenerationRequest, caller: Caller): Promise<AcceptedGeneration>
  /** Counts the tokens of a prompt. It needs no weights and does not queue. */
  countTokens(request: GenerationRequest, caller: Caller): Promise<number>
  /** Accepts a request when its texts are tokenized and queued. The only event has all vectors. */
  embed(request: EmbeddingRequest, caller: Caller): Promise<EventStream<Embeddings>>
  /** Accepts a request when its pairs are tokenized and queued. The only event has all scores. */
  rerank(request: RerankRequest, caller: Caller): Promise<EventStream<Ranking>>
  /** Accepts a request when its text is tokenized and queued. Each event has a sentence. */
  speak(request: SpeechRequest, caller: Caller): Promise<EventStream<SpeechPart>>
  /**
   * Measures one run of a predictor with the inputs, in milliseconds. For a language model, which
   * takes no inputs here, it is the time for one token.
   */
  measure(inputs: Record<string, unknown>, caller: Caller): Promise<number>
  /** Measures WASM with that number of threads: the milliseconds of a fixed piece of work. */
  measureThreads(setup: ThreadBenchmarkSetup, caller: Caller): Promise<number>
}

/** The methods of {@link ModelService}. */
export const MODEL_METHODS = {
  openModel: 'call',
  loadModel: 'call',
  openPredictor: 'call',
  predict: 'call',
  predictNext: 'call',
  generate: 'stream',
  countTokens: 'call',
  embed: 'stream',
  rerank: 'stream',
  speak: 'stream',
  measure: 'call',
  measureThreads: 'call',
} as const satisfies MethodTable<ModelService>
