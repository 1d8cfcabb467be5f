/** Defines the calls that the handlers of `/v1` make to the host. */
import type { ErrorRecord } from '../error.ts'
import type { AcceptedEvent, GenerationEvent, GenerationRequest } from './generation.ts'
import type {
  Model,
  Prediction,
  PredictionRequest,
  Predictor,
  RemotePredictionEvent,
  RemotePredictionRequest,
  Route,
  Tag,
} from './predictor.ts'

/** A generation. It is refused or accepted by its first event besides `progress`. */
export type Generation = EventStream<AcceptedEvent | GenerationEvent>

/** Embeddings that are being computed, and the place that answers if it is decided yet. */
export type EmbeddingStream = EventStream<EmbeddingEvent> & { servedBy?: Route }

/** Speech that is being computed, and its samples per second. */
export type SpeechStream = EventStream<SpeechEvent> & { rate: number }

/** A prediction for clients over HTTP. It is accepted once its predictor has run. */
export type RemotePrediction = EventStream<AcceptedEvent | RemotePredictionEvent> & { tag: Tag }

/** Description of a resource, available before its bytes are. */
export interface ResourceInfo {
  sha256: string
  name: string
  bytes: number
}

/** A resource with its bytes. The blob is backed by a file, so slicing it copies nothing. */
export type ResourceBody = Pick<ResourceInfo, 'sha256' | 'name'> & { blob: Blob }

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
  /** Generates an answer. The events throw the error of a request that is not accepted. */
  generate(request: GenerationRequest, caller: Caller): Promise<Generation>
  /**
   * Resolves with the number of prompt tokens of the request. Rejects like `generate`, but accepts
   * prompts of up to four times the model's context. It waits for the tokenizer, but neither for
   * the weights nor in the queue.
   */
  countTokens(request: GenerationRequest, caller: Caller): Promise<number>
  /** Embeds texts. The events end after `finish`, or throw the error of the request. */
  embed(request: EmbeddingRequest, caller: Caller): Promise<EmbeddingStream>
  /** Scores documents. The events end after `finish`, or throw the error of the request. */
  rerank(request: RerankRequest, caller: Caller): Promise<EventStream<RerankEvent>>
  /** Writes down speech. The events end after `finish`, or throw the error of the request. */
  transcribe(
    request: TranscriptionRequest,
    caller: Caller,
  ): Promise<EventStream<TranscriptionEvent>>
  /** Speaks a text. The events end after `finish`, or throw the error of the request. */
  speak(request: SpeechRequest, caller: Caller): Promise<SpeechStream>
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
  createBackground(
    response: BackgroundResponse,
    caller: Caller,
  ): Promise<Pick<AcceptedEvent, 'ignored'>>
  /** Resolves with a background response; `null` if there is none for this API key. */
  getBackground(id: string, caller: Caller): Promise<BackgroundLog | null>
  /** Streams all events of a background response but the first ones. Rejects with `not_found`. */
  followBackground(id: string, skippedEvents: number, caller: Caller): Promise<BackgroundStream>
  /** Ends an unfinished background response. Resolves with `true` if the key has that id. */
  cancelBackground(id: string, caller: Caller): Promise<boolean>
  /** Deletes a background response, and ends it first. Resolves with `true` if it existed. */
  deleteBackground(id: string, caller: Caller): Promise<boolean>
  /** Resolves with the catalog's description of a predictor. Rejects with `not_found`. */
  predictor(tag: Tag, caller: Caller): Promise<Predictor>
  /** Chooses an implementation for this device, or finds the one that was chosen earlier. */
  createPrediction(request: PredictionRequest, caller: Caller): Promise<Prediction>
  /**
   * Runs a predictor on inputs as clients send them over HTTP. Rejects if an input is invalid. The
   * events throw the error of the prediction.
   */
  createRemotePrediction(
    request: RemotePredictionRequest,
    caller: Caller,
  ): Promise<RemotePrediction>
  /** Resolves with a resource of the catalog or of a prediction. It needs no API key. */
  resourceInfo(sha256: string, caller: Caller): Promise<ResourceInfo>
  /** Resolves with a resource and its bytes, and downloads missing bytes first. */
  resource(sha256: string, caller: Caller): Promise<ResourceBody>
}

/** The methods of {@link Host}, which are all that the service worker needs. */
export const HOST_METHODS = {
  authorize: 'call',
  models: 'call',
  generate: 'monitored',
  countTokens: 'call',
  embed: 'monitored',
  rerank: 'monitored',
  transcribe: 'monitored',
  speak: 'monitored',
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

// Types of services: interfaces whose methods other threads can call.

/** Sender of a request, and the signal that cancels it. It is the last argument of every method. */
export interface Caller<Event = never> {
  /** API key as it was sent, without `Bearer`; `null` if none was sent. */
  key: string | null
  /** `true` if `key` is only a hash of the API key, for a request that is resumed later. */
  isKeyHashed?: boolean
  /** Id of the tab that sent the request, if known. Requests of different tabs take turns. */
  client?: string
  /** Signal that cancels the request. Generation then stops within one token. */
  signal: AbortSignal
  /** Called when another thread has received the request. From then on it may be running. */
  onAck?: () => void
  /** Receives the events before the result. */
  onEvent?: (event: Event) => void
  /**
   * Has the thread that produces a stream write its events directly to the caller, after those that
   * this thread has written. Resolves when all are written. Rejects if the stream fails. It may
   * only be called while the caller reads a stream from this thread, and is absent if the caller is
   * in this thread.
   */
  handOver?: (stream: RemoteStream<unknown>) => Promise<void>
}

/** Result of a method that returns a stream. Its other fields are available before the events. */
export interface EventStream<Event> {
  /** Events. They throw an `InoriginError` if the work fails. Leaving the loop cancels it. */
  events: AsyncIterable<Event>
}

/** A stream that another thread writes. Either its events are read, or they are piped. */
export interface RemoteStream<Event> extends EventStream<Event> {
  /**
   * Has the other thread write the events to this port. Resolves when the reader at the far end has
   * received all of them. Rejects if the stream fails or its thread ends.
   */
  pipeTo(port: MessagePort): Promise<void>
}

/**
 * Kind of a method. A `call` has one result, a `stream` has events after its result. A `monitored`
 * stream fails when the answering thread is silent, and contains heartbeats.
 */
export type MethodKind = 'call' | 'stream' | 'monitored'

type KindOf<Result> =
  Result extends EventStream<infer Event>
    ? { type: 'heartbeat' } extends Event
      ? 'stream' | 'monitored'
      : 'stream'
    : 'call'

/** Table of the methods of a service. Methods that are not listed cannot be called remotely. */
export type MethodTable<Service> = {
  readonly [Name in keyof Service]: Service[Name] extends (...args: never) => Promise<infer Result>
    ? KindOf<Result>
    : never
}

/** A service in another thread. */
export type Remote<Service> = {
  [Name in keyof Service]: Service[Name] extends (...args: infer Args) => Promise<infer Result>
    ? (
        ...args: Args
      ) => Promise<Result extends EventStream<infer Event> ? Result & RemoteStream<Event> : Result>
    : never
}

/** An item of a conversation in JSON, as clients send and receive it. */
export interface StoredItem {
  readonly id: string
  readonly [field: string]: unknown
}

/** A stored response that clients can refer to in later requests. */
export interface StoredResponse {
  /** Id of the response. It cannot be guessed. */
  id: string
  /** The response body as it was sent to the client. */
  body: Readonly<Record<string, unknown>>
  /** The whole conversation before the response, without its instructions. */
  input: readonly StoredItem[]
  /** The items of the response. A client can refer to each of them by its id. */
  output: readonly StoredItem[]
}

/** A response that the host computes in the background, as it is stored. */
export interface BackgroundResponse {
  /** Id of the response. It cannot be guessed. */
  id: string
  /** Time of creation in seconds since 1970. */
  createdAt: number
  request: GenerationRequest
  /** Fields of the body that the response repeats. Only `src/wire` reads them. */
  fields: Readonly<Record<string, unknown>>
  /** The whole conversation before the response, without its instructions. */
  input: readonly StoredItem[]
}

/** An event of a background response, from `queued` to `finish`. Heartbeats are not stored. */
export type BackgroundEvent =
  | { type: 'queued' }
  /** The last event also has the time of the end in seconds since 1970. */
  | (GenerationEvent & { completedAt?: number })
  | { type: 'finish'; reason: 'failed'; error: ErrorRecord }
  | { type: 'finish'; reason: 'cancelled' }

/** The events of a background response. */
export type BackgroundStream = EventStream<BackgroundEvent> & { response: BackgroundResponse }

/** A background response and its stored events so far. */
export interface BackgroundLog {
  response: BackgroundResponse
  events: readonly BackgroundEvent[]
}

/** The parsed body of `POST /v1/embeddings`. */
export interface EmbeddingRequest {
  model: Tag
  /** Texts to embed: at least one, and none of them empty. */
  input: readonly string[]
  /** Length of the vectors. Default: the length that the model produces. */
  dimensions?: number
  /** Name of the model's prompt that is put before each text. Default: as the model says. */
  promptName?: string
  /** `true` to leave out tokens beyond the maximum, `false` to refuse them. Default: the model's way. */
  truncate?: boolean
  /** The only place where the request may be answered. Default: any that the catalog allows. */
  route?: Route
}

/** One vector for each text, in the order of the texts. */
export interface Embeddings {
  /** All vectors, concatenated. */
  vectors: Float32Array<ArrayBuffer>
  /** Length of each vector. */
  dimensions: number
  /** Number of tokens of all texts, including the special tokens that the tokenizer adds. */
  tokens: number
}

/** An event of a running embedding request. */
export type EmbeddingEvent =
  /** A sign of life, sent when there was no other event for about 10 s. */
  { type: 'heartbeat' } | { type: 'finish'; embeddings: Embeddings; servedBy?: Route }

/** The parsed body of `POST /v1/rerank`. */
export interface RerankRequest {
  model: Tag
  /** Text that the documents are to answer. */
  query: string
  /** Texts to score: at least one. */
  documents: readonly string[]
}

/** Scores of documents, in their order. */
export interface Ranking {
  /** How well each document answers the query, most often from 0 to 1. */
  scores: readonly number[]
  /** Number of tokens of all pairs, including the special tokens that the tokenizer adds. */
  tokens: number
}

/** An event of a running request for scores. */
export type RerankEvent = { type: 'heartbeat' } | { type: 'finish'; ranking: Ranking }

/** How speech is written down. */
export interface TranscribeOptions {
  /** `translate` writes English, whatever is spoken. */
  task: 'transcribe' | 'translate'
  /** Code of the language that is spoken. Default: the one that is heard at the start. */
  language?: string
  /** Text before the speech, whose style and spelling continue. */
  prompt?: string
  /** Temperature of the softmax; 0, the default, always takes the best token. */
  temperature?: number
  /** Seed of random choices. Default: a random one. */
  seed?: number
  /** `true` for segments with their times and their quality. */
  hasSegments: boolean
  /** `true` for words with their times. Default: `false`. */
  hasWords?: boolean
}

/** The parsed body of `POST /v1/audio/transcriptions` and `POST /v1/audio/translations`. */
export interface TranscriptionRequest extends TranscribeOptions {
  model: Tag
  /** The file as it was sent. */
  file: Blob
  /** `true` for the text in pieces, besides the whole. */
  isStreamed: boolean
}

/** Part of what is said. Times are in seconds. */
export interface TranscribedSegment {
  /** Start of the window that was heard at once, in frames of the model. */
  seek: number
  start: number
  end: number
  /** Text, mostly with a space before it. */
  text: string
  /** Tokens, those of the times included. */
  tokens: readonly number[]
  /** Temperature with which the tokens were chosen. */
  temperature: number
  /** Measures of the window; `null` if no segments were wanted. */
  quality: {
    /** Mean of the logarithms of the probabilities of its tokens. */
    avgLogprob: number
    /** Length of its text, as a multiple of that of the compressed text. */
    compressionRatio: number
    /** Probability that nobody speaks. */
    noSpeechProb: number
  } | null
}

/** Speech of a sound as text. */
export interface Transcript {
  /** Text, mostly with a space before it. */
  text: string
  /** Code of the language that is spoken, such as `en`. */
  language: string
  /** Duration of the sound in seconds. */
  duration: number
  segments: TranscribedSegment[]
  /** Words with their times in seconds; empty if they are not wanted. */
  words: { word: string; start: number; end: number }[]
}

/** An event of speech that is being written down. */
export type TranscriptionEvent =
  | { type: 'heartbeat' }
  /** The next piece of the text. */
  | { type: 'text'; text: string }
  | { type: 'finish'; transcript: Transcript }
/** The parsed body of `POST /v1/audio/speech`. */
export interface SpeechRequest {
  model: Tag
  /** Text to speak. */
  input: string
  /** Name or number of a voice; `default` for that of the model. */
  voice: string
  /** Factor of the model's own speed. */
  speed: number
  /** Number of sentences that the client has already. Default: 0. */
  skippedSentences?: number
}

/** Sound of one sentence. */
export interface SpeechPart {
  type: 'audio'
  /** Samples of one channel. */
  samples: Int16Array<ArrayBuffer>
  /** Number of tokens of the sentence. */
  tokens: number
}

/** An event of running speech. */
export type SpeechEvent = { type: 'heartbeat' } | SpeechPart | { type: 'finish' }
