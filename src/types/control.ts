/// <reference lib="esnext.disposable" preserve="true" />
/** Defines the calls that pages make to the host, beside those of `/v1`. */
import type { ErrorCode, ErrorKind } from '../error.ts'
import { type Caller, type EventStream, type Host, HOST_METHODS, type MethodTable } from './host.ts'
import type {
  Device,
  Explanation,
  LoadProgress,
  ModelState,
  PredictionResult,
  PredictionStep,
  Predictor,
  Route,
  SessionPrediction,
  Tag,
} from './predictor.ts'
import type {
  ChosenFile,
  Imported,
  ImportProgress,
  ImportWishes,
  RepairProgress,
  StorageUsage,
  StoredAsset,
  StoredResource,
  StoredTag,
} from './storage.ts'

/**
 * The operations of the page's server handle, in addition to `/v1`. They use the same ports and need
 * no API key. Those without a comment do what the method of that name does in `src/server.ts`.
 */
export interface Control {
  modelStates(caller: Caller): Promise<ModelState[]>
  load(tag: Tag, caller: Caller<LoadProgress>): Promise<void>
  /** Lets implementations of the tag be loaded again whose loads ended their page or worker. */
  forgetCrashes(tag: Tag, caller: Caller): Promise<void>
  progress(caller: Caller): Promise<EventStream<LoadProgress>>
  trace(caller: Caller): Promise<EventStream<TraceEvent>>
  pause(tag: Tag, caller: Caller): Promise<void>
  cancel(tag: Tag, caller: Caller): Promise<void>
  unload(tag: Tag, caller: Caller): Promise<void>
  remove(tag: Tag, caller: Caller): Promise<void>
  storageUsage(caller: Caller): Promise<StorageUsage>
  storedTags(caller: Caller): Promise<StoredTag[]>
  storedResources(caller: Caller): Promise<StoredResource[]>
  storedAssets(caller: Caller): Promise<StoredAsset[]>
  removeAssets(caller: Caller): Promise<void>
  pin(tag: Tag, pinned: boolean, caller: Caller): Promise<void>
  repair(tag: Tag, caller: Caller<RepairProgress>): Promise<number>
  clear(caller: Caller): Promise<void>
  clearResponses(caller: Caller): Promise<void>
  importTag(
    tag: Tag,
    files: readonly ChosenFile[] | FileSystemDirectoryHandle,
    wishes: ImportWishes,
    caller: Caller<ImportProgress>,
  ): Promise<Imported>
  /** Resolves with the catalog's description of a predictor. Rejects with `not_found`. */
  describePredictor(tag: Tag, caller: Caller): Promise<Predictor>
  predict(
    tag: Tag,
    inputs: Record<string, unknown>,
    configuration: string | undefined,
    caller: Caller<PredictionStep>,
  ): Promise<PredictionResult>
  /**
   * Runs the next prediction of a session, like {@link predict}. `state` is that of the prediction
   * before; `null` for the first. The page keeps it, so nothing is lost with the host.
   */
  predictNext(
    tag: Tag,
    inputs: Record<string, unknown>,
    configuration: string | undefined,
    state: unknown,
    caller: Caller<PredictionStep>,
  ): Promise<SessionPrediction>
  /**
   * Passes a port to the caller that leads directly to the predictor's worker, and answers
   * {@link DIRECT_METHODS}. It loads nothing. Resolves if the predictor is not loaded, or when the
   * signal aborts. Rejects with the error with which the worker of the predictor ended.
   */
  openDirectPort(
    tag: Tag,
    configuration: string | undefined,
    caller: Caller<MessagePort>,
  ): Promise<void>
  explain(tag: Tag, caller: Caller): Promise<Explanation>
  /** Resolves with the names of the options in which a joining tab differs from the host. */
  compareOptions(options: OptionDigest, caller: Caller): Promise<string[]>
}

/** Everything that other threads can ask of the host. */
export interface HostService extends Host, Control {}

/** The methods of {@link HostService}. */
export const HOST_SERVICE_METHODS: MethodTable<HostService> = {
  ...HOST_METHODS,
  modelStates: 'call',
  load: 'call',
  forgetCrashes: 'call',
  progress: 'stream',
  trace: 'stream',
  pause: 'call',
  cancel: 'call',
  unload: 'call',
  remove: 'call',
  storageUsage: 'call',
  storedTags: 'call',
  storedResources: 'call',
  storedAssets: 'call',
  removeAssets: 'call',
  pin: 'call',
  repair: 'call',
  clear: 'call',
  clearResponses: 'call',
  importTag: 'call',
  describePredictor: 'call',
  predict: 'call',
  predictNext: 'call',
  openDirectPort: 'call',
  explain: 'call',
  compareOptions: 'call',
}

/** Calls that a page makes to the worker of a predictor over a direct port. */
export interface DirectPredictor {
  /** Runs the predictor. */
  predict(
    inputs: Record<string, unknown>,
    caller: Caller<{ text: string }>,
  ): Promise<PredictionResult>
  /** Runs the next prediction of a session from the state of the one before. */
  predictNext(
    inputs: Record<string, unknown>,
    state: unknown,
    caller: Caller,
  ): Promise<SessionPrediction>
}

/** The methods of {@link DirectPredictor}. */
export const DIRECT_METHODS = {
  predict: 'call',
  predictNext: 'call',
} as const satisfies MethodTable<DirectPredictor>

/** Digests of the options that all tabs must share. The API keys never leave their tab. */
export interface OptionDigest {
  catalog: string
  apiKeys: string
  device: string
  precision: string
  /** Upstream URLs that the app allows. */
  upstreams: string
  /** URLs from which images are fetched. */
  imageUrls: string
}

/** Operation of the host that a request needs. */
export type TracedOperation =
  | 'generate'
  | 'countTokens'
  | 'embed'
  | 'rerank'
  | 'transcribe'
  | 'speak'
  | 'createPrediction'
  | 'createRemotePrediction'
  | 'createBackground'
  | 'predict'
  | 'predictNext'

/** Fields of all events of one request. */
interface TracedRequest {
  /** Id of the request, unique in the tab that hosts. */
  id: string
  operation: TracedOperation
  tag: Tag
}

/** Error without its message, because a message may quote the request. */
export interface TracedError {
  kind: ErrorKind
  code: ErrorCode | null
}

/** Fields of the events of one load. */
interface TracedLoad {
  type: 'load'
  tag: Tag
  /** Id of the implementation in the catalog. */
  implementation: string
  device: Device
}

/** An event of {@link Server.trace}. None contains prompts, completions, inputs or API keys. */
export type TraceEvent = {
  /** Time of the event, in RFC 3339. */
  time: string
} &
  /** The first event of each host. Another tab may host now, with no models in memory. */
  (
    | { type: 'host' }
    /** The host received a request of any tab. */
    | (TracedRequest & { type: 'request' })
    /**
     * The request was answered. `milliseconds` is the time since it was received. `servedBy` is the
     * place that answered; it is absent if the operation has no upstream servers, or if the place of
     * an embedding was not known after 5 s.
     */
    | (TracedRequest & { type: 'response'; milliseconds: number; servedBy?: Route })
    /** The request failed or was canceled. */
    | (TracedRequest & { type: 'failure'; milliseconds: number; error: TracedError })
    /** An implementation was chosen for a request or a load. */
    | { type: 'choice'; tag: Tag; implementation: string; device: Device }
    /** A load started, or the model is ready. */
    | (TracedLoad & { status: 'started' | 'ready' })
    /** The model left the memory, or its load ended. `error` says why. */
    | (TracedLoad & { status: 'ended'; error: TracedError })
  )

/** The fields of an event that its reporter provides. */
export type TraceReport = TraceEvent extends infer Event
  ? Event extends { time: string }
    ? Omit<Event, 'time'>
    : never
  : never

/** Options of `server.bridge()`. */
export interface BridgeOptions {
  /** Token that `inorigin bridge` printed. */
  token: string
  /**
   * `true` to connect again when the command has ended and is started anew with the same token.
   * Default: `false`, so that the end of the command ends the agreement.
   */
  reconnect?: boolean
  /** Callback for changes of the state, such as to show the user that the tab is lent. */
  onChange?: (state: BridgeState) => void
  /** Signal that cancels the connection, and later closes the bridge. */
  signal?: AbortSignal
}

/** State of a bridge. */
export interface BridgeState {
  /** `reconnecting` while the command does not answer. */
  status: 'connected' | 'reconnecting' | 'closed'
  /** Number of requests of other programs that the tab answers at the moment. */
  requests: number
  /** Number of requests that ended since the bridge was opened. */
  answered: number
}

/** Connection by which programs outside the browser use this tab. `using` closes it after a block. */
export interface Bridge extends Disposable {
  readonly state: BridgeState
  /**
   * Promise that resolves when the bridge was closed by {@link Bridge.close} or by the signal. It
   * rejects with `bridge_unreachable` when the command ended or closed the connection, unless the
   * tab connects again, and with `bridge_refused` when the command has another token then.
   */
  readonly closed: Promise<void>
  /** Cancels open requests and closes the connection, or ends the wait for one. */
  close(): void
}
