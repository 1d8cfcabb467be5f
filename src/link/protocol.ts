/**
 * All messages between threads. Each request has its own `MessagePort`. The asking side sends
 * `call`, and the answering side replies with `ack` at once. Then it sends `event`s and one
 * `result`, or for a stream one `result` (accepted), `event`s and `end`. An `error` ends both.
 */
import type { CatalogDocument, Implementation } from '../catalog/schema.ts'
import type { GpuVerdict } from '../device/gpu-verdict.ts'
import type { EngineSetup, Files } from '../engine/engine.ts'
import type { ErrorRecord } from '../error.ts'
import type { PredictorSetup } from '../predictor/open-predictor.ts'
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

/** Protocol version, increased with each change of a message. The host's lock name contains it. */
export const PROTOCOL = 1

/** Methods of the host with one result. `event` is the type of the events before the result. */
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
   * Sends a port that leads directly to the predictor's worker, if the predictor is in memory. The
   * page posts one port for each `predict` to it. The call fails when the predictor is unloaded.
   */
  lend: { args: [tag: Tag, configuration: string | undefined]; result: void; event: MessagePort }
  explain: { args: [tag: Tag]; result: Explanation; event: never }
  compare: { args: [options: OptionDigest]; result: string[]; event: never }
}

/** Methods of the host that return a stream. */
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
}

/** The sender of a request to a model worker. */
export interface Sender {
  /** Id of the tab. Requests of different tabs take turns. */
  client: string
  /** Partition of the prefix cache. Requests share cached prefixes only within a partition. */
  partition: string
}

/** Parameters with which a model worker opens a predictor. */
export interface PredictorFiles extends Pick<
  PredictorSetup,
  'entry' | 'implementation' | 'files' | 'runtime'
> {
  /** Result of the GPU self-test. Default: the worker runs the self-test. */
  verdict: GpuVerdict | undefined
}

/** Methods of a model worker with one result. */
export interface ModelCalls {
  /** Opens a language model's tokenizer and chat template. */
  openModel: { args: [setup: ModelSetup]; result: void; event: never }
  /**
   * Loads the weights, and sends `warm` when the warm-up starts. Requests that were accepted
   * earlier wait for it. The result is that of the GPU self-test.
   */
  loadModel: { args: [weights: Files]; result: GpuVerdict | null; event: 'warm' }
  /** Counts the tokens of a prompt. It needs no weights and does not queue. */
  countTokens: { args: [request: GenerationRequest]; result: number; event: never }
  /** Opens a predictor. The result is that of the GPU self-test. */
  openPredictor: { args: [setup: PredictorFiles]; result: GpuVerdict | null; event: never }
  predict: { args: [inputs: Record<string, unknown>]; result: PredictionResult; event: never }
  /** Measures the milliseconds of one run with sample inputs; of one token for a language model. */
  measure: { args: []; result: number; event: never }
}

/** Methods of a model worker that return a stream. */
export interface ModelStreams {
  /** Accepts a request when its prompt is tokenized, fits into the context, and is queued. */
  generate: {
    args: [request: GenerationRequest, sender: Sender]
    result: { ignored: string[] }
    event: GenerationEvent
  }
  /** Accepts a request when its texts are tokenized and queued. The only event has all vectors. */
  embed: { args: [request: EmbeddingRequest, sender: Sender]; result: void; event: Embeddings }
}

/** Messages of the asking side. */
export type AskMessage =
  | {
      type: 'call'
      protocol: number
      method: string
      args: readonly unknown[]
      key: string | null
      /** Id of the tab that asks; empty if only one tab can ask. */
      client: string
      /** Name of a lock that the asking thread holds while it lives. The other side watches it. */
      life: string | null
    }
  /** Lets the answering side send this many more events of a stream. */
  | { type: 'credit'; events: number }
  | { type: 'cancel' }

/** Messages of the answering side. */
export type AnswerMessage =
  /** Acknowledges the request before any work. The thread holds the lock `life` while it lives. */
  | { type: 'ack'; life: string | null }
  /** Comes from a page whose worker is still starting. The asking side keeps waiting. */
  | { type: 'starting' }
  /** Comes from a thread that no longer hosts. The asking side looks for the new host. */
  | { type: 'moved' }
  | { type: 'result'; value: unknown }
  | { type: 'event'; event: unknown }
  | { type: 'end' }
  | { type: 'error'; error: ErrorRecord }

/**
 * Messages from the service worker to pages. Pages ignore messages with another protocol or scope.
 */
export type WorkerToPage = { protocol: number; scope: string } & (
  | { type: 'inorigin:who-hosts' }
  /** Comes with a port for the host's dedicated worker. */
  | { type: 'inorigin:request' }
  /** Asks the page to steal the host's lock, because the tab that holds it does not answer. */
  | { type: 'inorigin:steal' }
)

/** Messages from a page to the service worker. */
export type PageToWorker =
  /** Asks the worker to control a page that a hard reload left uncontrolled. */
  | { type: 'inorigin:claim' }
  /** Comes with a port, which receives a {@link WorkerStatus}. */
  | { type: 'inorigin:status' }
  /** Asks a waiting script to replace the active one, which has no open requests. */
  | { type: 'inorigin:update' }
  /** Says that the tab hosts: the answer to `who-hosts`, also sent when a tab becomes the host. */
  | { type: 'inorigin:hosting'; protocol: number }
  /** Answers `who-hosts` in a tab that does not host, but is a candidate. */
  | { type: 'inorigin:standing'; protocol: number }
  /** Comes with a port to forward to the host. `attempt` is the number of earlier attempts. */
  | { type: 'inorigin:forward'; protocol: number; attempt: number }
  /** Keeps the worker alive while a stream is open; timed by the dedicated worker. */
  | { type: 'inorigin:pulse' }

/** Status of a service worker. */
export interface WorkerStatus {
  protocol: number
  /** Number of requests that it is answering now. */
  open: number
  /** Name of the lock that it holds while it lives. */
  life: string
}

/** Parameters with which the host worker is started. */
export interface HostSetup {
  /** URL of the scope, with a trailing slash. */
  scope: string
  /**
   * URL of the folder with the workers, the runtime and the default models, with a trailing slash.
   */
  assets: string
  /** Additional catalog or its URL; `null` if there is only the default one. */
  catalog: string | CatalogDocument | null
  /** API keys to accept; `null` accepts any key, or none. */
  apiKeys: readonly string[] | null
  device: Device | 'auto'
}

/** Messages from a page to its dedicated worker. */
export type PageToHost =
  | { type: 'start'; setup: HostSetup }
  /** Comes with a port that carries one request. */
  | { type: 'port' }

/** Messages from the host to a model worker. */
export type HostToModel =
  /** Comes with a port that carries one request. */
  | { type: 'port' }
  /** Comes with a port to which a page posts one port for each request. */
  | { type: 'lend' }
  /** Requests a `pong`, which the worker sends as soon as its thread is free. */
  | { type: 'ping' }

/** Messages from a model worker to the host. */
export type ModelToHost =
  /** Reports the number of unanswered requests that arrived over direct ports. */
  | { type: 'use'; requests: number }
  /** Reports the name of a lock that the model worker holds while it lives. */
  | { type: 'life'; life: string }
  | { type: 'pong' }

/** Messages from the dedicated worker to its page. */
export type HostToPage =
  /** Names a lock that the worker holds while it lives; `null` if there are no Web Locks. */
  | { type: 'started'; protocol: number; life: string | null }
  /** Reports every 10 s that a stream is open. */
  | { type: 'pulse' }
  /** Reports that a download starts. The page then asks the browser for persistent storage. */
  | { type: 'downloading' }

/** Returns the names of the host's lock and of the database for one scope. */
export function names(scope: string): { host: string; database: string } {
  // The database has its own version, because downloads stay valid when messages change.
  return { host: `inorigin:${PROTOCOL}:${scope}:host`, database: `inorigin:1:${scope}` }
}
