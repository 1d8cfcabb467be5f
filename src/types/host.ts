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
   * Ends after `finish`; throws an `InoriginError` on a late failure. Abandoning it cancels the
   * work.
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
   * Tokens of the prompt that such a request makes; it may be refused as by `generate`, but for
   * what is too long only where it is four times so. Waits for the model's tokenizer, but neither
   * for its weights nor in its queue.
   */
  countTokens(request: GenerationRequest, caller: Caller): Promise<number>
  /**
   * Vectors of texts. Resolves when the texts are read and queued, or after 5 s; what goes wrong
   * before is a rejection, what goes wrong later is thrown by the events, which end after `finish`.
   */
  embed(request: EmbeddingRequest, caller: Caller): Promise<AsyncIterable<EmbeddingEvent>>
  /**
   * Keeps a response for requests with the same key, in memory alone: it is forgotten with the
   * host, or when others need the room. Whether it is kept: not what is too large.
   */
  keepResponse(response: KeptResponse, caller: Caller): Promise<boolean>
  /** Resolves with a stored response; `null` if there is none with that id for this API key. */
  keptResponse(id: string, caller: Caller): Promise<KeptResponse | null>
  /** Resolves with the output items of stored responses; `null` for each unknown id. */
  keptItems(ids: readonly string[], caller: Caller): Promise<Array<KeptItem | null>>
  /** Deletes a stored response. Resolves with `true` if it existed. */
  forgetResponse(id: string, caller: Caller): Promise<boolean>
  predictor(tag: Tag, caller: Caller): Promise<Predictor>
  createPrediction(request: PredictionRequest, caller: Caller): Promise<Prediction>
  /**
   * Runs a predictor on inputs as {@link Control.predict} takes them. Resolves when it has
   * answered, or after 5 s; rejects when it is refused or fails before. The events throw what fails
   * later.
   */
  predict(
    tag: Tag,
    inputs: Record<string, unknown>,
    caller: Caller,
  ): Promise<AsyncIterable<PredictionEvent>>
  /**
   * A resource of any implementation of the catalog, or of one that was given before. Needs no key.
   */
  resourceInfo(sha256: string, caller: Caller): Promise<ResourceInfo>
  /**
   * Resolves with a resource and its bytes, and downloads missing bytes first. The caller's signal
   * cancels the download.
   */
  resource(sha256: string, caller: Caller): Promise<ResourceBody>
}

/** What the page's server handle asks of the host beyond `/v1`. Same threads, same ports. */
export interface Control {
  list(): Promise<ModelState[]>
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
   * Reads all that is stored of it and fetches what is damaged; resolves with the bytes of that.
   */
  repair(
    tag: Tag,
    signal: AbortSignal,
    onProgress: (progress: RepairProgress) => void,
  ): Promise<number>
  /** Unloads everything and deletes all resources. */
  clear(): Promise<void>
  /**
   * Stores files of the user's as what the tag needs; of a tag that is not listed, drafts what it
   * is.
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

/** Digests of the options that all tabs must share. The API keys themselves are never sent. */
export interface OptionDigest {
  catalog: string
  apiKeys: string
  device: string
}
