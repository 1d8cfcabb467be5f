import type { Explanation } from './choice.ts'
import type { EmbeddingEvent, EmbeddingRequest } from './embedding.ts'
import type { GenerationEvent, GenerationRequest } from './generation.ts'
import type { LoadProgress, Model, ModelState, Tag } from './model.ts'
import type {
  Prediction,
  PredictionEvent,
  PredictionRequest,
  PredictionResult,
  Predictor,
} from './predictor.ts'
import type { KeptItem, KeptResponse } from './response.ts'
import type { Caller, EventStream, MethodTable } from './service.ts'
import type {
  ChosenFile,
  Imported,
  ImportProgress,
  ImportWishes,
  RepairProgress,
  StorageUsage,
  StoredResource,
  StoredTag,
} from './storage.ts'

/** A generation that has been accepted, or whose model is still being loaded. */
export interface Generation extends EventStream<GenerationEvent> {
  /** Fields of {@link GenerationRequest} that have no effect, as far as known so far. */
  ignored: string[]
}

/** Description of a resource, available before its bytes are. */
export interface ResourceInfo {
  sha256: string
  name: string
  bytes: number
}

/** A resource with its bytes. */
export interface ResourceBody {
  sha256: string
  name: string
  /** Bytes of the resource. The blob is backed by a file, so slicing it copies nothing. */
  blob: Blob
}

/**
 * The operations behind `/v1`. The host worker implements them. Service worker and pages call them
 * with `remote` of `src/link`; `src/wire` cannot tell which one it has. Every method rejects with
 * an `InoriginError`, and checks `authentication` first.
 */
export interface Host {
  /** Resolves if the API key is valid. For requests that end before they reach another method. */
  authorize(caller: Caller): Promise<void>
  /** Resolves with the language models and the embedding predictors. */
  models(caller: Caller): Promise<Model[]>
  /**
   * Resolves when the request is accepted and queued, or after 5 s. Rejects if the request is
   * rejected before, or if loading its model fails at once.
   */
  generate(request: GenerationRequest, caller: Caller): Promise<Generation>
  /**
   * Resolves with the number of prompt tokens of the request. Rejects like `generate`, but accepts
   * prompts of up to four times the model's context. It waits for the tokenizer, but neither for
   * the weights nor in the queue.
   */
  countTokens(request: GenerationRequest, caller: Caller): Promise<number>
  /**
   * Embeds texts. Resolves when the texts are tokenized and queued, or after 5 s. Rejects if the
   * request fails before that. The events end after `finish` and throw later errors.
   */
  embed(request: EmbeddingRequest, caller: Caller): Promise<EventStream<EmbeddingEvent>>
  /**
   * Stores a response for later requests with the same API key. It is stored in memory only, until
   * the host ends or it is evicted. Resolves with `false` if there is no room for it.
   */
  keepResponse(response: KeptResponse, caller: Caller): Promise<boolean>
  /** Resolves with a stored response; `null` if there is none with that id for this API key. */
  keptResponse(id: string, caller: Caller): Promise<KeptResponse | null>
  /** Resolves with the output items of stored responses; `null` for each unknown id. */
  keptItems(ids: readonly string[], caller: Caller): Promise<Array<KeptItem | null>>
  /** Deletes a stored response. Resolves with `true` if it existed. */
  forgetResponse(id: string, caller: Caller): Promise<boolean>
  /** Resolves with the catalog's description of a predictor. Rejects with `not_found`. */
  predictor(tag: Tag, caller: Caller): Promise<Predictor>
  /** Chooses an implementation for this device, or finds the one that was chosen earlier. */
  createPrediction(request: PredictionRequest, caller: Caller): Promise<Prediction>
  /**
   * Runs a predictor on the inputs of {@link Control.predict}. Resolves when the result is there,
   * or after 5 s. Rejects if the prediction fails before that. The events throw later errors.
   */
  createRemotePrediction(
    tag: Tag,
    inputs: Record<string, unknown>,
    caller: Caller,
  ): Promise<EventStream<PredictionEvent>>
  /**
   * Resolves with the description of a resource of the catalog or of an earlier prediction. It
   * needs no API key.
   */
  resourceInfo(sha256: string, caller: Caller): Promise<ResourceInfo>
  /**
   * Resolves with a resource and its bytes, and downloads missing bytes first. The caller's signal
   * cancels the download.
   */
  resource(sha256: string, caller: Caller): Promise<ResourceBody>
}

/** The methods of {@link Host}, which are all that the service worker needs. */
export const HOST_METHODS = {
  authorize: 'call',
  models: 'call',
  generate: 'monitored',
  countTokens: 'call',
  embed: 'monitored',
  keepResponse: 'call',
  keptResponse: 'call',
  keptItems: 'call',
  forgetResponse: 'call',
  predictor: 'call',
  createPrediction: 'call',
  createRemotePrediction: 'monitored',
  resourceInfo: 'call',
  resource: 'call',
} as const satisfies MethodTable<Host>

/**
 * The operations of the page's server handle, in addition to `/v1`. They use the same ports and
 * need no API key.
 */
export interface Control {
  /** Resolves with the state of every catalog entry. */
  modelStates(caller: Caller): Promise<ModelState[]>
  /** Loads the tag, and downloads its missing files first. */
  load(tag: Tag, caller: Caller<LoadProgress>): Promise<void>
  /** Streams the progress of every load, whichever tab started it. It ends with the signal. */
  progress(caller: Caller): Promise<EventStream<LoadProgress>>
  /** Frees the memory of the tag. Its stored files stay. */
  unload(tag: Tag, caller: Caller): Promise<void>
  /** Unloads the tag and deletes the files that no other tag uses, including partial downloads. */
  remove(tag: Tag, caller: Caller): Promise<void>
  /** Resolves with the storage in use and available. */
  storageUsage(caller: Caller): Promise<StorageUsage>
  /** Resolves with the stored files, grouped by tag. */
  storedTags(caller: Caller): Promise<StoredTag[]>
  /** Resolves with the stored files. */
  storedResources(caller: Caller): Promise<StoredResource[]>
  /** Protects the files of the tag from eviction, or ends that protection. */
  pin(tag: Tag, pinned: boolean, caller: Caller): Promise<void>
  /**
   * Reads the stored files of the tag and downloads the damaged parts again. Resolves with the
   * number of damaged bytes.
   */
  repair(tag: Tag, caller: Caller<RepairProgress>): Promise<number>
  /** Unloads everything and deletes all resources. */
  clear(caller: Caller): Promise<void>
  /**
   * Stores the user's files as the resources of the tag. If no catalog lists the tag, it drafts a
   * catalog entry from the files.
   */
  importTag(
    tag: Tag,
    files: readonly ChosenFile[] | FileSystemDirectoryHandle,
    wishes: ImportWishes,
    caller: Caller<ImportProgress>,
  ): Promise<Imported>
  /** Resolves with the catalog's description of a predictor. Rejects with `not_found`. */
  describePredictor(tag: Tag, caller: Caller): Promise<Predictor>
  /**
   * Runs a predictor, and loads it first if necessary. The default of `configuration` is the best
   * implementation for this device.
   */
  predict(
    tag: Tag,
    inputs: Record<string, unknown>,
    configuration: string | undefined,
    caller: Caller<LoadProgress>,
  ): Promise<PredictionResult>
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
  /** Resolves with the implementation that this device uses, and why the others are not used. */
  explain(tag: Tag, caller: Caller): Promise<Explanation>
  /** Resolves with the names of the options in which a joining tab differs from the host. */
  compareOptions(options: OptionDigest, caller: Caller): Promise<string[]>
}

/** The methods of {@link Control}. */
const CONTROL_METHODS = {
  modelStates: 'call',
  load: 'call',
  progress: 'stream',
  unload: 'call',
  remove: 'call',
  storageUsage: 'call',
  storedTags: 'call',
  storedResources: 'call',
  pin: 'call',
  repair: 'call',
  clear: 'call',
  importTag: 'call',
  describePredictor: 'call',
  predict: 'call',
  openDirectPort: 'call',
  explain: 'call',
  compareOptions: 'call',
} as const satisfies MethodTable<Control>

/** Everything that other threads can ask of the host. */
export interface HostService extends Host, Control {}

/** The methods of {@link HostService}. */
export const HOST_SERVICE_METHODS: MethodTable<HostService> = {
  ...HOST_METHODS,
  ...CONTROL_METHODS,
}

/** What a page can ask of a predictor's worker over a direct port. */
export interface DirectPredictor {
  /** Runs the predictor. */
  predict(inputs: Record<string, unknown>, caller: Caller): Promise<PredictionResult>
}

/** The methods of {@link DirectPredictor}. */
export const DIRECT_METHODS = { predict: 'call' } as const satisfies MethodTable<DirectPredictor>

/** Digests of the options that all tabs must share. The API keys never leave their tab. */
export interface OptionDigest {
  catalog: string
  apiKeys: string
  device: string
}
