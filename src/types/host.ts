/** Defines the calls that the handlers of `/v1` make to the host. */
import type { EmbeddingEvent, EmbeddingRequest } from './embedding.ts'
import type { GenerationEvent, GenerationRequest } from './generation.ts'
import type { Model, Route, Tag } from './model.ts'
import type {
  Prediction,
  PredictionRequest,
  Predictor,
  RemotePredictionEvent,
  RemotePredictionRequest,
} from './predictor.ts'
import type {
  BackgroundLog,
  BackgroundResponse,
  BackgroundStream,
  StoredItem,
  StoredResponse,
} from './response.ts'
import type { Caller, EventStream, MethodTable } from './service.ts'

/** A generation that has been accepted, or whose model is still being loaded. */
export interface Generation extends EventStream<GenerationEvent> {
  /** Fields of {@link GenerationRequest} that have no effect, as far as known so far. */
  ignored: string[]
  /** Place that answers the request. Absent if that is not decided yet. */
  servedBy?: Route
}

/** Embeddings that have been accepted, or whose model is still being loaded. */
export interface EmbeddingStream extends EventStream<EmbeddingEvent> {
  /** Place that answers the request. Absent if that is not decided yet. */
  servedBy?: Route
}

/** A prediction for clients over HTTP that has been accepted. */
export interface RemotePrediction extends EventStream<RemotePredictionEvent> {
  tag: Tag
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
  embed(request: EmbeddingRequest, caller: Caller): Promise<EmbeddingStream>
  /**
   * Stores a response for later requests with the same API key. It is stored in memory only, until
   * the host ends or it is evicted. Resolves with `false` if there is no room for it.
   */
  storeResponse(response: StoredResponse, caller: Caller): Promise<boolean>
  /** Resolves with a stored response; `null` if there is none with that id for this API key. */
  getStoredResponse(id: string, caller: Caller): Promise<StoredResponse | null>
  /** Resolves with the output items of stored responses; `null` for each unknown id. */
  getStoredItems(ids: readonly string[], caller: Caller): Promise<Array<StoredItem | null>>
  /** Deletes a stored response. Resolves with `true` if it existed. */
  deleteStoredResponse(id: string, caller: Caller): Promise<boolean>
  /**
   * Stores a response on this device and computes it in the background, whoever leaves. Resolves
   * with the fields that have no effect when the request is accepted, or after 5 s. Rejects as
   * `generate` does, and if the API key has too many background responses.
   */
  createBackground(response: BackgroundResponse, caller: Caller): Promise<{ ignored: string[] }>
  /** Resolves with a background response; `null` if there is none for this API key. */
  getBackground(id: string, caller: Caller): Promise<BackgroundLog | null>
  /**
   * Streams the events of a background response, first the stored ones, then those to come. It
   * skips the first `skippedEvents` stored events. Rejects with `not_found`.
   */
  followBackground(id: string, skippedEvents: number, caller: Caller): Promise<BackgroundStream>
  /**
   * Ends a background response that is not finished. Resolves with `true` if a background response
   * with that id exists for this API key.
   */
  cancelBackground(id: string, caller: Caller): Promise<boolean>
  /** Deletes a background response, and ends it first. Resolves with `true` if it existed. */
  deleteBackground(id: string, caller: Caller): Promise<boolean>
  /** Resolves with the catalog's description of a predictor. Rejects with `not_found`. */
  predictor(tag: Tag, caller: Caller): Promise<Predictor>
  /** Chooses an implementation for this device, or finds the one that was chosen earlier. */
  createPrediction(request: PredictionRequest, caller: Caller): Promise<Prediction>
  /**
   * Runs a predictor on inputs as clients send them over HTTP. Resolves when the result is there, or
   * after 5 s. Rejects if an input is invalid or the prediction fails before that. The events throw
   * later errors.
   */
  createRemotePrediction(
    request: RemotePredictionRequest,
    caller: Caller,
  ): Promise<RemotePrediction>
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
  storeResponse: 'call',
  getStoredResponse: 'call',
  getStoredItems: 'call',
  deleteStoredResponse: 'call',
  createBackground: 'call',
  getBackground: 'call',
  followBackground: 'monitored',
  cancelBackground: 'call',
  deleteBackground: 'call',
  predictor: 'call',
  createPrediction: 'call',
  createRemotePrediction: 'monitored',
  resourceInfo: 'call',
  resource: 'call',
} as const satisfies MethodTable<Host>
