import type { ErrorKind } from '../error.ts'
import type { ErrorCode } from '../error-codes.ts'
import type { Device, Route, Tag } from './model.ts'

/** Operation of the host that a request needs. */
export type TracedOperation =
  | 'generate'
  | 'countTokens'
  | 'embed'
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

/**
 * An event of {@link Server.trace}. No event contains prompts, completions, inputs, outputs or API
 * keys.
 */
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
