/**
 * Every message that crosses a thread. One request is one `MessagePort`: the asking side sends `call`,
 * the answering side `ack` at once, then either progress and one `result`, or a `result` (accepted)
 * followed by a stream of `event` and an `end`. An `error` ends both.
 */
import type { CatalogDocument, Implementation } from '../catalog/schema.ts'
import type { GpuVerdict } from '../device/verdict.ts'
import type { EngineSetup, Files } from '../engine/engine.ts'
import type { ErrorRecord } from '../error.ts'
import type { PredictorSetup } from '../predictor/run.ts'
import type {
  ChosenFile,
  Device,
  EmbeddingEvent,
  EmbeddingRequest,
  Embeddings,
  Explanation,
  GenerationEvent,
  GenerationRequest,
  ImportProgress,
  Imported,
  ImportWishes,
  KeptItem,
  KeptResponse,
  LoadProgress,
  Model,
  ModelState,
  OptionDigest,
  Prediction,
  PredictionEvent,
  PredictionRequest,
  PredictionResult,
  Predictor,
  RepairProgress,
  ResourceBody,
  ResourceInfo,
  StorageUsage,
  StoredResource,
  StoredTag,
  Tag,
} from '../types/index.ts'

/** Raised whenever a message changes its form. Part of the names of the host's lock and messages. */
export const PROTOCOL = 1

/** What is asked of the host and answered once; `event` is what it may tell meanwhile. */
export interface HostCalls {
  authorize: { args: []; result: void; event: never }
  models: { args: []; result: Model[]; event: never }
  countTokens: { args: [request: GenerationRequest]; result: number; event: never }
  keepResponse: { args: [response: KeptResponse]; result: boolean; event: never }
  keptResponse: { args: [id: string]; result: KeptResponse | null; event: never }
  keptItems: { args: [ids: readonly string[]]; result: Array<KeptItem | null>; event: never }
  forgetResponse: { args: [id: string]; result: boolean; event: never }
  predictor: { args: [tag: Tag]; result: Predictor; event: never }
  createPrediction: { args: [request: PredictionRequest]; result: Prediction; event: never }
  resourceInfo: { args: [sha256: string]; result: ResourceInfo; event: never }
  resource: { args: [sha256: string]; result: ResourceBody; event: never }
  list: { args: []; result: ModelState[]; event: never }
  load: { args: [tag: Tag]; result: void; event: LoadProgress }
  unload: { args: [tag: Tag]; result: void; event: never }
  remove: { args: [tag: Tag]; result: void; event: never }
  usage: { args: []; result: StorageUsage; event: never }
  stored: { args: []; result: StoredTag[]; event: never }
  storedFiles: { args: []; result: StoredResource[]; event: never }
  pin: { args: [tag: Tag, pinned: boolean]; result: void; event: never }
  repair: { args: [tag: Tag]; result: number; event: RepairProgress }
  clear: { args: []; result: void; event: never }
  take: {
    args: [tag: Tag, files: readonly ChosenFile[] | FileSystemDirectoryHandle, wishes: ImportWishes]
    result: Imported
    event: ImportProgress
  }
  describe: { args: [tag: Tag]; result: Predictor; event: never }
  predict: {
    args: [tag: Tag, inputs: Record<string, unknown>, configuration: string | undefined]
    result: PredictionResult
    event: LoadProgress
  }
  /**
   * Tells of a port straight to the predictor's worker, for ports of `predict`, where it is in memory.
   * Fails when it leaves that.
   */
  lend: { args: [tag: Tag, configuration: string | undefined]; result: void; event: MessagePort }
  explain: { args: [tag: Tag]; result: Explanation; event: never }
  compare: { args: [options: OptionDigest]; result: string[]; event: never }
}

/** What is asked of the host and answered by a stream. */
export interface HostStreams {
  generate: {
    args: [request: GenerationRequest]
    result: { ignored: string[] }
    event: GenerationEvent
  }
  runPredictor: {
    args: [tag: Tag, inputs: Record<string, unknown>]
    result: void
    event: PredictionEvent
  }
  embed: { args: [request: EmbeddingRequest]; result: void; event: EmbeddingEvent }
  progress: { args: []; result: void; event: LoadProgress }
}

/** What a model worker opens a language model with. */
export interface ModelSetup extends EngineSetup {
  engine: Implementation['engine']
  /** Most tokens of one answer. */
  maxOutputTokens: number
  /** The format in which it calls tools, where the catalog names one. */
  toolFormat: string | undefined
  /** Whether it reasons; absent: as its chat template says. */
  reasons: boolean | undefined
  /** Most tokens of reasoning when a request does not say. */
  reasoningBudget: number
}

/** For whom a model worker answers. */
export interface Sender {
  /** Requests of different clients take turns. */
  client: string
  /** What is cached is shared within one partition only. */
  partition: string
}

/** What a model worker opens a predictor with. */
export interface PredictorFiles extends Pick<
  PredictorSetup,
  'entry' | 'implementation' | 'files' | 'runtime'
> {
  /** What is known of the GPU; absent: it is tried. */
  verdict: GpuVerdict | undefined
}

/** What the host asks of a model worker, once. */
export interface ModelCalls {
  /** Opens a language model's tokenizer and template. */
  openModel: { args: [setup: ModelSetup]; result: void; event: never }
  /**
   * Loads its weights, and tells when they are there and the model is only being warmed. Requests that
   * were accepted before wait for this. The result is what was found out about the GPU.
   */
  loadModel: { args: [weights: Files]; result: GpuVerdict | null; event: 'warm' }
  /** Needs no weights and does not queue. */
  countTokens: { args: [request: GenerationRequest]; result: number; event: never }
  /** The result is what was found out about the GPU. */
  openPredictor: { args: [setup: PredictorFiles]; result: GpuVerdict | null; event: never }
  predict: { args: [inputs: Record<string, unknown>]; result: PredictionResult; event: never }
  /** Milliseconds of one run, of one token for a language model, with inputs that are made up. */
  measure: { args: []; result: number; event: never }
}

/** What the host asks of a model worker as a stream. */
export interface ModelStreams {
  /** Accepted once it is templated, tokenised, fits and is queued. */
  generate: {
    args: [request: GenerationRequest, sender: Sender]
    result: { ignored: string[] }
    event: GenerationEvent
  }
  /** Accepted once its texts are read and it is queued; the one event is all vectors. */
  embed: { args: [request: EmbeddingRequest, sender: Sender]; result: void; event: Embeddings }
}

/** From the side that asks. */
export type AskMessage =
  | {
      type: 'call'
      protocol: number
      method: string
      args: readonly unknown[]
      key: string | null
      /** Which tab asks; empty where there is only one asker. */
      client: string
      /** A lock the asking thread holds while it lives; its grant to another is its death notice. */
      life: string | null
    }
  /** The asking side can take this many more events of a stream. */
  | { type: 'credit'; events: number }
  | { type: 'cancel' }

/** From the side that answers. */
export type AnswerMessage =
  /** Here, and alive under this lock. Sent before anything else is done. */
  | { type: 'ack'; life: string | null }
  /** From a page whose worker is not up yet: it will be, so keep waiting. */
  | { type: 'starting' }
  /** The thread this reached does not host any more: find the one that does. */
  | { type: 'moved' }
  | { type: 'result'; value: unknown }
  | { type: 'event'; event: unknown }
  | { type: 'end' }
  | { type: 'error'; error: ErrorRecord }

/** Service worker to pages. All carry the server they speak of; pages of another stay silent. */
export type WorkerToPage = { protocol: number; scope: string } & (
  | { type: 'inorigin:who-hosts' }
  /** With a port: for the host's dedicated worker. */
  | { type: 'inorigin:request' }
  /** Take the host's lock: whoever holds it does not answer. */
  | { type: 'inorigin:steal' }
)

/** Page to service worker. */
export type PageToWorker =
  /** Take control of a page that a hard reload left uncontrolled. */
  | { type: 'inorigin:claim' }
  /** With a port, answered by {@link WorkerStatus}. */
  | { type: 'inorigin:status' }
  /** Replace the active script; sent to a waiting one when nothing streams. */
  | { type: 'inorigin:update' }
  /** The answer to `who-hosts`, and what a tab says when it becomes the host. */
  | { type: 'inorigin:hosting'; protocol: number }
  /** The other answer: not the host, but ready to be. */
  | { type: 'inorigin:standing'; protocol: number }
  /** With a port: for whoever hosts. `attempt` counts the tries before. */
  | { type: 'inorigin:forward'; protocol: number; attempt: number }
  /** Keeps the worker alive while a stream is open; timed by the dedicated worker. */
  | { type: 'inorigin:pulse' }

/** What a service worker says of itself. */
export interface WorkerStatus {
  protocol: number
  /** Requests it is answering at this moment. */
  open: number
  /** Name of the lock that it holds while it lives. */
  life: string
}

/** How the host worker is started. */
export interface HostSetup {
  /** URL of the scope, with a trailing slash. */
  scope: string
  /** URL of the folder with the workers, the runtime and the default models, with a trailing slash. */
  assets: string
  /** URL or document; absent: the default one alone. */
  catalog: string | CatalogDocument | null
  /** Absent: any key or none will do. */
  apiKeys: readonly string[] | null
  device: Device | 'auto'
}

/** Page to its dedicated worker. */
export type PageToHost =
  | { type: 'start'; setup: HostSetup }
  /** With a port that carries one request. */
  | { type: 'port' }

/** The host to a model worker. */
export type HostToModel =
  /** With a port that carries one request. */
  | { type: 'port' }
  /** With a port that a page posts such ports to. */
  | { type: 'lend' }
  /** Answered by `pong` as soon as the thread is free. */
  | { type: 'ping' }

/** A model worker to the host. */
export type ModelToHost =
  /** Requests that arrived over lent ports and are not answered yet. */
  | { type: 'use'; requests: number }
  /** A lock that the model worker holds while it lives. */
  | { type: 'life'; life: string }
  | { type: 'pong' }

/** Dedicated worker to its page. */
export type HostToPage =
  /** `life` names a lock that the worker holds while it lives; `null` where there are no locks. */
  | { type: 'started'; protocol: number; life: string | null }
  /** A stream is open and 10 s have passed. */
  | { type: 'pulse' }
  /** A download begins: time to ask the browser to keep what is stored. */
  | { type: 'downloading' }

/** The names that separate one server from another. */
export function names(scope: string): { host: string; database: string } {
  // The database has versions of its own: what was downloaded outlives the messages.
  return { host: `inorigin:${PROTOCOL}:${scope}:host`, database: `inorigin:1:${scope}` }
}
