/**
 * Every message that crosses a thread. One request is one `MessagePort`: the asking side sends `call`,
 * the answering side `ack` at once, then `result`, `error`, or `accepted` and a stream of `event`.
 */
import type { ErrorRecord } from '../error.ts'
import type {
  GenerationEvent, GenerationRequest, LoadProgress, Model, ModelState, OptionDigest,
  Prediction, PredictionRequest, PredictionResult, Predictor, ResourceBody, Tag,
} from '../types/index.ts'

/** Raised whenever a message changes its form. Part of every lock, channel and database name. */
export const PROTOCOL = 1

/** What can be asked over a port: arguments and what comes back. */
export interface Methods {
  authorize: { args: []; result: void }
  models: { args: []; result: Model[] }
  generate: { args: [request: GenerationRequest]; result: { ignored: string[] }; event: GenerationEvent }
  predictor: { args: [tag: Tag]; result: Predictor }
  createPrediction: { args: [request: PredictionRequest]; result: Prediction }
  resource: { args: [sha256: string]; result: ResourceBody }
  list: { args: []; result: ModelState[] }
  load: { args: [tag: Tag]; result: void; event: LoadProgress }
  unload: { args: [tag: Tag]; result: void }
  remove: { args: [tag: Tag]; result: void }
  predict: {
    args: [tag: Tag, inputs: Record<string, unknown>, configuration: string | undefined]
    result: PredictionResult
    event: LoadProgress
  }
  compare: { args: [options: OptionDigest]; result: string[] }
}

export type Method = keyof Methods

/** From the side that asks. */
export type AskMessage =
  | {
      type: 'call'
      protocol: number
      method: Method
      args: readonly unknown[]
      key: string | null
      /** A lock the asking thread holds while it lives; its grant to another is its death notice. */
      life: string | null
    }
  /** The asking side can take this many more events. */
  | { type: 'credit'; events: number }
  | { type: 'cancel' }

/** From the side that answers. */
export type AnswerMessage =
  /** Here, and alive under this lock. Sent before anything else is done. */
  | { type: 'ack'; life: string | null }
  | { type: 'result'; value: unknown }
  | { type: 'event'; event: unknown }
  | { type: 'end' }
  | { type: 'error'; error: ErrorRecord }

/** Service worker to pages. */
export type WorkerToPage =
  | { type: 'inorigin:who-hosts'; protocol: number; scope: string }
  /** With a port: for the host's dedicated worker. */
  | { type: 'inorigin:request'; protocol: number; scope: string }
  | { type: 'inorigin:steal'; protocol: number; scope: string }

/** Page to service worker. */
export type PageToWorker =
  | { type: 'inorigin:claim' }
  /** The answer to `who-hosts`, and what a tab says when it becomes the host. */
  | { type: 'inorigin:hosting'; protocol: number; scope: string }
  /** With a port: for whoever hosts. */
  | { type: 'inorigin:forward'; protocol: number }
  /** Keeps the worker alive while a stream is open; asked for by the dedicated worker. */
  | { type: 'inorigin:pulse' }
  /** Take over from an older script, if no stream is open. */
  | { type: 'inorigin:update' }

/** The names that separate one server from another. */
export function names(scope: string): { host: string; database: string; channel: string } {
  const base = `inorigin:${PROTOCOL}:${scope}`
  return { host: `${base}:host`, database: base, channel: `${base}:channel` }
}
