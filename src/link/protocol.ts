/**
 * The messages on ports, and those between pages and the service worker.
 *
 * Each request has its own `MessagePort`, the request port. The asking side sends `call`, and the
 * answering side replies with `ack` at once. After some `event`s, if the method has any, it sends
 * one `result`. An `error` can take the place of each later message.
 *
 * The `result` of a stream says that it is accepted. The asking side then sends `pipe` with a second
 * port, the event port, whose other end it reads or has given to another thread. The answering side
 * writes the events there, and sends `end` when the reader has received all of them.
 */
import type { ErrorRecord } from '../error.ts'

/** Protocol version, increased with each change of a message. The host's lock name contains it. */
export const PROTOCOL = 1

/**
 * Parameter of the service worker script's URL: `true` lets the script isolate pages. The URL is the
 * only thing that a restarted service worker knows at once, before it answers a request.
 */
export const ISOLATE_PARAM = 'isolate'
/** Parameter of that URL: `false` lets the script keep no files. */
export const OFFLINE_PARAM = 'offline'
/** Parameter of that URL: path of the assets, unless they are in `inorigin/` beside the script. */
export const ASSETS_PARAM = 'assets'
/**
 * Parameter of the script that makes it a new script for the browser, so that it takes over again.
 */
export const RETAKE_PARAM = 'retake'

/** Path below the scope that the service worker answers by itself, with this header. */
export const PROBE_PATH = 'v1/inorigin-probe'
export const PROBE_HEADER = 'x-inorigin-probe'

/**
 * Longest time in milliseconds without a message on a call or a monitored stream. Browsers stop a service
 * worker after 30 s without one.
 */
export const HEARTBEAT_INTERVAL_MS = 10_000

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
  /** Comes with the event port. `credit` is the number of events that may be sent at first. */
  | { type: 'pipe'; credit: number }
  | { type: 'cancel' }

/** Messages of the answering side. */
export type AnswerMessage =
  /** Acknowledges the request before any work. The thread holds the lock `life` while it lives. */
  | { type: 'ack'; life: string | null }
  /** Comes from a page whose worker is still starting. The asking side keeps waiting. */
  | { type: 'starting' }
  /** Comes from a thread that no longer hosts. The asking side looks for the new host. */
  | { type: 'moved' }
  /** Reports something that happened before the result. */
  | { type: 'event'; event: unknown }
  | { type: 'result'; value: unknown }
  /** Comes twice in each heartbeat interval while a call or a monitored stream is open. */
  | { type: 'heartbeat' }
  | { type: 'end' }
  | { type: 'error'; error: ErrorRecord }

/** Messages of the thread that writes to an event port. */
export type WriterMessage =
  | { type: 'event'; event: unknown }
  /** Comes with a port on which another thread writes further events. */
  | { type: 'handover' }
  /** Says that this was the last event, even if the stream failed. */
  | { type: 'end' }

/** Messages of the thread that reads an event port. */
export type ReaderMessage =
  /** Lets the writer send this many more events. */
  | { type: 'credit'; events: number }
  /** Answers `end`. Only then the writer reports the end of the stream on the request port. */
  | { type: 'ended' }

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
  /** Says that the tab, which hosted, stops or closes. */
  | { type: 'inorigin:left' }
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
  /** `true` if it isolates pages, and this browser is known to honor that. */
  isolates: boolean
}

/** Names of what the threads of one scope share. */
interface SharedNames {
  /** Lock of the host. */
  host: string
  /** `BroadcastChannel` of the stored responses. */
  responses: string
  database: string
}

/** Returns the names for one scope. */
export function names(scope: string): SharedNames {
  return {
    host: `inorigin:${PROTOCOL}:${scope}:host`,
    responses: `inorigin:${PROTOCOL}:${scope}:responses`,
    // The database has its own version, because downloads stay valid when messages change.
    database: `inorigin:1:${scope}`,
  }
}
