import { InoriginError } from '../../../src/error.ts'
import { createResponseStore } from '../../../src/host/requests/response-store.ts'
import type {
  Caller,
  EmbeddingRequest,
  GenerationEvent,
  GenerationRequest,
  Host,
  Model,
  PredictionRequest,
  Predictor,
  Usage,
} from '../../../src/types/index.ts'
import { handle } from '../../../src/wire/handler.ts'
import { backgroundHost } from './background-host.ts'
import { lengths } from './vectors.ts'

export const KEY = 'sk-good'

export const TINY: Model = {
  tag: '@acme/tiny',
  name: 'Tiny',
  created: '2026-03-04T05:06:07Z',
  maxInputTokens: 2048,
  maxOutputTokens: 512,
  capabilities: {},
}

export const SEEING: Model = {
  tag: '@acme/seeing',
  name: 'Seeing',
  created: '2026-03-05T00:00:00+01:00',
  maxInputTokens: 8192,
  maxOutputTokens: 4096,
  capabilities: { tools: true, thinking: true, imageInput: true, structuredOutputs: true },
}

export const AREA: Predictor = {
  tag: '@yusuf/area',
  owner: { username: 'yusuf', created: '2026-01-01T00:00:00Z' },
  name: 'Area',
  description: 'The area of a circle',
  card: '# Area',
  status: 'active',
  access: 'public',
  signature: {
    inputs: [
      {
        name: 'radius',
        type: 'float32',
        description: 'Radius',
        optional: false,
        range: { min: 0 },
      },
    ],
    outputs: [{ name: 'area', type: 'float32' }],
  },
}

export const DIGEST = 'ab'.repeat(32)

/** What a generation tells; an error is thrown, a number of milliseconds is waited. */
export type Script = ReadonlyArray<GenerationEvent | Error>

export const USAGE: Usage = {
  promptTokens: 12,
  cachedTokens: 5,
  completionTokens: 3,
  reasoningTokens: 0,
}

/** `Hello there`, as told by a model that had to be loaded. */
export const HELLO: Script = [
  {
    type: 'progress',
    progress: {
      tag: '@acme/tiny',
      phase: 'download',
      loadedBytes: 45,
      totalBytes: 100,
      bytesPerSecond: 3_100_000,
      remainingSeconds: 80,
    },
  },
  { type: 'heartbeat' },
  { type: 'start', promptTokens: 12, cachedTokens: 5 },
  { type: 'text', text: 'Hello' },
  { type: 'heartbeat' },
  { type: 'text', text: ' there' },
  { type: 'finish', reason: 'stop', stopSequence: null, usage: USAGE },
]

export interface ScriptedHost extends Host {
  /** What arrived, in order. */
  requests: GenerationRequest[]
  embedded: EmbeddingRequest[]
  predictions: PredictionRequest[]
  callers: Caller[]
  authorized: number
  /** Events that were taken from the last generation. */
  read: number
  /** Whether the last generation ended, or was told to end. */
  returned: boolean
}

export interface HostOptions {
  script?: Script
  /** Checks keys; absent: anything goes. */
  keyed?: boolean
  ignored?: string[]
  overrides?: Partial<Host>
}

/** A host that tells what it was told to tell, and remembers what it was asked. */
export function scriptedHost({
  script = HELLO,
  keyed = false,
  ignored = [],
  overrides = {},
}: HostOptions = {}): ScriptedHost {
  const admit = (caller: Caller): void => {
    host.callers.push(caller)
    if (keyed && caller.key !== KEY) {
      throw new InoriginError('authentication', 'That key is none of this server.', {
        code: 'invalid_api_key',
      })
    }
  }
  const host: ScriptedHost = {
    requests: [],
    embedded: [],
    predictions: [],
    callers: [],
    authorized: 0,
    read: 0,
    returned: false,
    async authorize(caller) {
      host.authorized++
      admit(caller)
    },
    async models(caller) {
      admit(caller)
      return [TINY, SEEING]
    },
    async generate(request, caller) {
      admit(caller)
      if (request.model !== TINY.tag) {
        throw new InoriginError('not_found', `There is no model ${request.model}.`, {
          code: 'model_not_found',
          param: 'model',
        })
      }
      host.requests.push(request)
      host.read = 0
      host.returned = false
      return { ignored, events: play(script, host, caller.signal) }
    },
    async countTokens(request, caller) {
      admit(caller)
      host.requests.push(request)
      return 42
    },
    async embed(request, caller) {
      admit(caller)
      host.embedded.push(request)
      return { events: lengths(request) }
    },
    ...createResponseStore(admit).methods,
    ...backgroundHost((request, caller) => host.generate(request, caller)),
    async predictor(tag, caller) {
      admit(caller)
      if (tag !== AREA.tag) throw new InoriginError('not_found', `There is no predictor ${tag}.`)
      return { ...AREA, secret: 'of the host' } as Predictor
    },
    async createPrediction(request, caller) {
      admit(caller)
      host.predictions.push(request)
      return {
        id: 'pred_1',
        tag: request.tag,
        configuration: 'c1',
        resources: [
          { type: 'onnx', url: `http://localhost/v1/resources/${DIGEST}`, name: 'area.onnx' },
        ],
        created: '2026-02-03T04:05:06Z',
      }
    },
    async createRemotePrediction(_request, caller) {
      admit(caller)
      throw new InoriginError('internal', 'This host runs no predictor.')
    },
    async resourceInfo(sha256) {
      if (sha256 !== DIGEST) throw new InoriginError('not_found', 'There is no such resource.')
      return { sha256, name: 'area.onnx', bytes: 10 }
    },
    async resource(sha256) {
      if (sha256 !== DIGEST) throw new InoriginError('not_found', 'There is no such resource.')
      return { sha256, name: 'area.onnx', blob: new Blob(['0123456789']) }
    },
    ...overrides,
  }
  return host
}

function play(
  script: Script,
  host: ScriptedHost,
  signal: AbortSignal,
): AsyncIterable<GenerationEvent> {
  return {
    [Symbol.asyncIterator]() {
      let at = 0
      return {
        async next() {
          signal.throwIfAborted()
          const event = script[at++]
          if (event instanceof Error) throw event
          if (event === undefined) {
            host.returned = true
            return { done: true, value: undefined }
          }
          host.read = at
          return { done: false, value: event }
        },
        async return() {
          host.returned = true
          return { done: true, value: undefined }
        },
      }
    },
  }
}

export const ORIGIN = 'http://localhost'

export interface Sent {
  method?: string
  body?: unknown
  headers?: Record<string, string>
  signal?: AbortSignal
  base?: string
}

/** Sends a request to the handler; an object for a body is sent as JSON. */
export function send(
  host: Host,
  path: string,
  { method, body, headers, signal, base }: Sent = {},
): Promise<Response> {
  const json = typeof body === 'object' && !(body instanceof Uint8Array)
  const request = new Request(ORIGIN + path, {
    method: method ?? (body === undefined ? 'GET' : 'POST'),
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    body: (json ? JSON.stringify(body) : body) as BodyInit,
    signal,
  })
  return handle(request, host, { base })
}

/** The handler as the `fetch` an SDK is given. */
export function fetchOf(host: Host): typeof fetch {
  return (input, init) => handle(new Request(input, init), host)
}

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const item of items) list.push(item)
  return list
}

export const chatOf = (fields: object = {}) => ({
  model: '@acme/tiny',
  messages: [{ role: 'user', content: 'Hi' }],
  ...fields,
})

export const messageOf = (fields: object = {}) => ({ ...chatOf(), max_tokens: 100, ...fields })

export interface ErrorBody {
  type: string
  error: {
    type: string
    message: string
    param: string | null
    code: string | null
    details: Record<string, unknown>
  }
  request_id: string
  errors: Array<{ message: string }>
}

/** The error an answer carries, after checking everything that every error has. */
export async function errorOf(response: Response, status: number): Promise<ErrorBody['error']> {
  const text = await response.text()
  if (response.status !== status)
    throw new Error(`${response.status} instead of ${status}: ${text}`)
  const body = JSON.parse(text) as ErrorBody
  const { error } = body
  const sound =
    response.headers.get('content-type') === 'application/json' &&
    response.headers.get('cache-control') === 'no-store' &&
    Object.keys(body).join() === 'type,error,request_id,errors' &&
    body.type === 'error' &&
    /^req_[0-9a-f]{24}$/.test(body.request_id) &&
    response.headers.get('request-id') === body.request_id &&
    response.headers.get('x-request-id') === body.request_id &&
    Object.keys(error).toSorted().join() === 'code,details,message,param,type' &&
    typeof error.type === 'string' &&
    error.type !== '' &&
    typeof error.message === 'string' &&
    error.message !== '' &&
    (error.param === null || typeof error.param === 'string') &&
    (error.code === null || typeof error.code === 'string') &&
    typeof error.details === 'object' &&
    error.details !== null &&
    body.errors.length === 1 &&
    body.errors[0]?.message === error.message
  if (!sound) throw new Error(`not the error body: ${text}`)
  return error
}
