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

/** Who asks, and how they give up. */
export interface Caller {
  /** The key as it was sent, without `Bearer`; `null` when none was. */
  key: string | null
  /** Which tab asks, where that is known: requests of different ones take turns. */
  client?: string
  /** Aborting it ends the work within one token. */
  signal: AbortSignal
}

/** A generation that has been accepted, or whose model is still being loaded. */
export interface Generation {
  /** Fields of {@link GenerationRequest} that had no effect, as far as that is known by now. */
  ignored: string[]
  /** Ends after `finish`; throws an `InoriginError` on a late failure. Abandoning it cancels the work. */
  events: AsyncIterable<GenerationEvent>
}

/** What is known of a resource before its bytes are here. */
export interface ResourceInfo {
  sha256: string
  name: string
  bytes: number
}

/** The bytes of one resource. */
export interface ResourceBody {
  sha256: string
  name: string
  /** File-backed: a slice costs nothing. */
  blob: Blob
}

/**
 * What answers `/v1`. One implementation is the host worker itself, the other is the far side of a
 * port; `src/wire` cannot tell which it talks to. Every method rejects with an `InoriginError`:
 * `authentication` first, then whatever else applies.
 */
export interface Host {
  /** Resolves when the key is good. For requests that end before they reach another method. */
  authorize(caller: Caller): Promise<void>
  models(caller: Caller): Promise<Model[]>
  /** Resolves when the request is accepted and queued, or its model is loading, or after 5 s. */
  generate(request: GenerationRequest, caller: Caller): Promise<Generation>
  /**
   * Tokens of the prompt that such a request makes; it may be refused as by `generate`, but for what is
   * too long only where it is four times so. Waits for the model's tokenizer, but neither for its weights
   * nor in its queue.
   */
  countTokens(request: GenerationRequest, caller: Caller): Promise<number>
  /**
   * Vectors of texts. Resolves when the texts are read and queued, or after 5 s; what goes wrong before
   * is a rejection, what goes wrong later is thrown by the events, which end after `finish`.
   */
  embed(request: EmbeddingRequest, caller: Caller): Promise<AsyncIterable<EmbeddingEvent>>
  /**
   * Keeps a response for requests with the same key, in memory alone: it is forgotten with the host, or
   * when others need the room. Whether it is kept: not what is too large.
   */
  keepResponse(response: KeptResponse, caller: Caller): Promise<boolean>
  /** `null` for what is not kept, or not for this key. */
  keptResponse(id: string, caller: Caller): Promise<KeptResponse | null>
  /** What responses answered, by the ids of the items; `null` as above. */
  keptItems(ids: readonly string[], caller: Caller): Promise<Array<KeptItem | null>>
  /** Whether it was kept. */
  forgetResponse(id: string, caller: Caller): Promise<boolean>
  predictor(tag: Tag, caller: Caller): Promise<Predictor>
  createPrediction(request: PredictionRequest, caller: Caller): Promise<Prediction>
  /**
   * Runs a predictor on inputs as {@link Control.predict} takes them. Resolves when it has answered, or
   * after 5 s; rejects when it is refused or fails before. The events throw what fails later.
   */
  predict(
    tag: Tag,
    inputs: Record<string, unknown>,
    caller: Caller,
  ): Promise<AsyncIterable<PredictionEvent>>
  /** A resource of any implementation of the catalog, or of one that was given before. Needs no key. */
  resourceInfo(sha256: string, caller: Caller): Promise<ResourceInfo>
  /** The same with its bytes, downloaded first if they are missing; given up with the signal. */
  resource(sha256: string, caller: Caller): Promise<ResourceBody>
}

/** What the page's server handle asks of the host beyond `/v1`. Same threads, same ports. */
export interface Control {
  list(): Promise<ModelState[]>
  load(tag: Tag, signal: AbortSignal, onProgress: (progress: LoadProgress) => void): Promise<void>
  /** Every step of every load, whoever asked for it. Leaving the loop stops watching. */
  progress(signal: AbortSignal): AsyncIterable<LoadProgress>
  /** Frees its memory; what is stored stays. */
  unload(tag: Tag): Promise<void>
  /** Unloads and deletes what only this tag uses, also what is unfinished of it. */
  remove(tag: Tag): Promise<void>
  usage(): Promise<StorageUsage>
  stored(): Promise<StoredTag[]>
  storedFiles(): Promise<StoredResource[]>
  /** Keeps what is stored for it from being evicted, or no longer. */
  pin(tag: Tag, pinned: boolean): Promise<void>
  /** Reads all that is stored of it and fetches what is damaged; resolves with the bytes of that. */
  repair(
    tag: Tag,
    signal: AbortSignal,
    onProgress: (progress: RepairProgress) => void,
  ): Promise<number>
  /** Unloads everything and deletes every resource. */
  clear(): Promise<void>
  /** Stores files of the user's as what the tag needs; of a tag that is not listed, drafts what it is. */
  take(
    tag: Tag,
    files: readonly ChosenFile[] | FileSystemDirectoryHandle,
    wishes: ImportWishes,
    signal: AbortSignal,
    onProgress: (progress: ImportProgress) => void,
  ): Promise<Imported>
  /** What the catalog says of it. Rejects with `not_found`. */
  describe(tag: Tag): Promise<Predictor>
  predict(
    tag: Tag,
    inputs: Record<string, unknown>,
    options: {
      configuration?: string
      signal: AbortSignal
      onProgress: (progress: LoadProgress) => void
    },
  ): Promise<PredictionResult>
  /** Which implementation this device uses, and why not another. */
  explain(tag: Tag, signal: AbortSignal): Promise<Explanation>
  /** The names of the options in which a tab that joins differs from the host. */
  compare(options: OptionDigest, signal: AbortSignal): Promise<string[]>
}

/** Digests of the options two tabs must share; keys never leave their tab in the clear. */
export interface OptionDigest {
  catalog: string
  apiKeys: string
  device: string
}
