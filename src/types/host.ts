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

/** Sender of a request, and the signal that cancels it. */
export interface Caller {
  /** API key as it was sent, without `Bearer`; `null` if none was sent. */
  key: string | null
  /** Id of the tab that sent the request, if known. Requests of different tabs take turns. */
  client?: string
  /** Signal that cancels the request. Generation then stops within one token. */
  signal: AbortSignal
}

/** A generation that has been accepted, or whose model is still being loaded. */
export interface Generation {
  /** Fields of {@link GenerationRequest} that have no effect, as far as known so far. */
  ignored: string[]
  /**
   * Events of the generation, up to `finish`. The iterator throws an `InoriginError` if the
   * generation fails later. Leaving the loop cancels the generation.
   */
  events: AsyncIterable<GenerationEvent>
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
 * The operations behind `/v1`. One implementation runs in the host worker, the other forwards each
 * call over a port; `src/wire` cannot tell them apart. Every method rejects with an
 * `InoriginError`, and checks `authentication` first.
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
  embed(request: EmbeddingRequest, caller: Caller): Promise<AsyncIterable<EmbeddingEvent>>
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
  predict(
    tag: Tag,
    inputs: Record<string, unknown>,
    caller: Caller,
  ): Promise<AsyncIterable<PredictionEvent>>
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

/** The operations of the page's server handle, in addition to `/v1`. They use the same ports. */
export interface Control {
  /** Resolves with the state of every catalog entry. */
  list(): Promise<ModelState[]>
  /** Loads the tag, and downloads its missing files first. */
  load(tag: Tag, signal: AbortSignal, onProgress: (progress: LoadProgress) => void): Promise<void>
  /** Yields the progress of every load, whichever tab started it. It ends with the signal. */
  progress(signal: AbortSignal): AsyncIterable<LoadProgress>
  /** Frees the memory of the tag. Its stored files stay. */
  unload(tag: Tag): Promise<void>
  /** Unloads the tag and deletes the files that no other tag uses, including partial downloads. */
  remove(tag: Tag): Promise<void>
  /** Resolves with the storage in use and available. */
  usage(): Promise<StorageUsage>
  /** Resolves with the stored files, grouped by tag. */
  stored(): Promise<StoredTag[]>
  /** Resolves with the stored files. */
  storedFiles(): Promise<StoredResource[]>
  /** Protects the files of the tag from eviction, or ends that protection. */
  pin(tag: Tag, pinned: boolean): Promise<void>
  /**
   * Reads the stored files of the tag and downloads the damaged parts again. Resolves with the
   * number of damaged bytes.
   */
  repair(
    tag: Tag,
    signal: AbortSignal,
    onProgress: (progress: RepairProgress) => void,
  ): Promise<number>
  /** Unloads everything and deletes all resources. */
  clear(): Promise<void>
  /**
   * Stores the user's files as the resources of the tag. If no catalog lists the tag, it drafts a
   * catalog entry from the files.
   */
  take(
    tag: Tag,
    files: readonly ChosenFile[] | FileSystemDirectoryHandle,
    wishes: ImportWishes,
    signal: AbortSignal,
    onProgress: (progress: ImportProgress) => void,
  ): Promise<Imported>
  /** Resolves with the catalog's description of a predictor. Rejects with `not_found`. */
  describe(tag: Tag): Promise<Predictor>
  /** Runs a predictor, and loads it first if necessary. */
  predict(
    tag: Tag,
    inputs: Record<string, unknown>,
    options: {
      configuration?: string
      signal: AbortSignal
      onProgress: (progress: LoadProgress) => void
    },
  ): Promise<PredictionResult>
  /** Resolves with the implementation that this device uses, and why the others are not used. */
  explain(tag: Tag, signal: AbortSignal): Promise<Explanation>
  /** Resolves with the names of the options in which a joining tab differs from the host. */
  compare(options: OptionDigest, signal: AbortSignal): Promise<string[]>
}

/** Digests of the options that all tabs must share. The API keys never leave their tab. */
export interface OptionDigest {
  catalog: string
  apiKeys: string
  device: string
}
