/** The messages between a page, its host worker and the model workers, beside those on ports. */
import type { CatalogInput } from '../catalog/schema.ts'
import type { GpuComparison } from '../device/gpu-verdict.ts'
import type { ErrorRecord } from '../error.ts'
import type { Sound } from '../predictor/audio.ts'
import type { Device, OptionDigest, Precision, StoredResponse } from '../types/index.ts'
import { computeDigest } from '../values/text.ts'

/** Parameters with which the host worker is started. */
export interface HostSetup {
  /** URL of the scope, with a trailing slash. */
  scope: string
  /**
   * URL of the folder with the workers, the runtime and the default models, with a trailing slash.
   */
  assets: string
  /** Additional catalog or its URL; `null` if there is only the default one. */
  catalog: string | CatalogInput | null
  /** API keys to accept; `null` accepts any key, or none. */
  apiKeys: readonly string[] | null
  device: Device | 'auto'
  /** Precision of language models of which the catalog names none. */
  precision: Precision
  /** `true` to keep a copy of the catalog for starts without a network. */
  offline: boolean
  /** URLs that the app allows as upstream of a catalog from a URL. */
  upstreams: readonly string[]
  /** URLs from which, and from below which, images of requests are fetched. */
  imageUrls: readonly string[]
}

/** A response that a host stores in memory. */
export interface ResponseCopy {
  response: StoredResponse
  /** API key of the owner; `null` if it sent none. */
  key: string | null
}

/** The stored responses that a host takes over from an earlier one. */
export interface ResponseHandover {
  /** Name of the `BroadcastChannel` on which hosts publish changes. */
  channelName: string
  copies: ResponseCopy[]
}

/** Messages on the channel of stored responses. */
export type CopyMessage =
  /** A page has joined and needs all responses. */
  | { type: 'join' }
  /** The host has stored these, or answers `join` with all. */
  | { type: 'stored'; copies: ResponseCopy[] }
  /** The host has deleted or evicted these. */
  | { type: 'removed'; ids: string[] }

/** Messages from a page to its dedicated worker. */
export type PageToHost =
  /**
   * `isElected` is `false` in a page that hosts for itself only. `lastEnded` is the name of the
   * liveness lock of the last host that ended in order.
   */
  | {
      type: 'start'
      setup: HostSetup
      isElected: boolean
      lastEnded: string | null
      responses: ResponseHandover
    }
  /** Comes with a port that carries one request. */
  | { type: 'port' }
  /** Answers a message `headers`. `error` is set if the app's function failed. */
  | { type: 'headers'; id: number; headers: Record<string, string>; error?: string }
  /** Answers a message `decode`. */
  | { type: 'decoded'; id: number; result: Sound | ErrorRecord }

/** Messages from the host to a model worker. */
export type HostToModel =
  /** Comes with a port that carries one request. */
  | { type: 'port' }
  /** Comes with a port to which a page posts one port for each request. */
  | { type: 'direct' }
  /** Requests a `pong`, which the worker sends as soon as its thread is free. */
  | { type: 'ping' }

/** Messages from a model worker to the host. */
export type ModelToHost =
  /** Reports the number of unanswered requests that arrived over direct ports. */
  | { type: 'use'; requests: number }
  /** Reports whether a predictor computes the same on the GPU as on the CPU. */
  | { type: 'compared'; comparison: GpuComparison }
  /** Reports the name of a lock that the model worker holds while it lives. */
  | { type: 'life'; life: string }
  | { type: 'pong' }

/** Messages from the dedicated worker to its page. */
export type HostToPage =
  /** Names a lock that the worker holds while it lives; `null` if there are no Web Locks. */
  | { type: 'started'; protocol: number; life: string | null }
  /** Reports every 10 s that a stream is open. */
  | { type: 'pulse' }
  /** Reports that a download starts. The page then asks the browser for persistent storage. */
  | { type: 'downloading' }
  /** Requests the headers that the app adds to requests to an upstream URL. */
  | { type: 'headers'; id: number; url: string }
  /** Requests the sound of a file, which the browser only decodes in pages. */
  | { type: 'decode'; id: number; file: Blob }

// Digests of the options on which tabs that share a host must agree. They hide the API keys.

/** Resolves with digests of the options that a host applies for every tab. */
export async function digestOptions(setup: HostSetup): Promise<OptionDigest> {
  const keys = setup.apiKeys && [...setup.apiKeys].sort()
  return {
    catalog: await digest(setup.scope, setup.catalog),
    apiKeys: await digest(setup.scope, keys),
    device: setup.device,
    precision: setup.precision,
    upstreams: await digest(setup.scope, [...setup.upstreams].sort()),
    imageUrls: await digest(setup.scope, [...setup.imageUrls].sort()),
  }
}

/** Returns the names of the options that differ. */
export function findDifferences(one: OptionDigest, other: OptionDigest): string[] {
  const names = ['catalog', 'apiKeys', 'device', 'precision', 'upstreams', 'imageUrls'] as const
  return names.filter((name) => one[name] !== other[name])
}

const digest = (salt: string, value: unknown): Promise<string> =>
  computeDigest('SHA-256', new TextEncoder().encode(`${salt}\n${JSON.stringify(value)}`))
