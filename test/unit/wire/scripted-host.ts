/** The host of `inorigin/testing` for tests of the wire: it writes raw events, and records its calls. */
import {
  createScriptedHost,
  createTestBackground,
  type Loadable,
} from '../../../src/extras/testing/scripted-host.ts'
import { InoriginError } from '../../../src/error.ts'
import { createAuthorization, withAuthorization } from '../../../src/host/requests/middleware.ts'
import type {
  AcceptedEvent,
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
import { parseErrorBody, type WireError } from '../../support/error-body.ts'
import { ensure } from '../../support/sse-grammar.ts'

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

/** Its vectors are the length of the text, a third of it and its negative. */
export const EMBEDDER = '@acme/embed'

export const DIGEST = 'ab'.repeat(32)
const RESOURCE = { sha256: DIGEST, name: 'area.onnx' }

/** Events of a generation, of which an error is thrown. */
export type Script = ReadonlyArray<GenerationEvent | Error>

export const USAGE: Usage = {
  promptTokens: 12,
  cachedTokens: 5,
  completionTokens: 3,
  reasoningTokens: 0,
}

/** `Hello there`, by a model that had to be loaded. */
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
  /** The calls so far, in order. */
  requests: GenerationRequest[]
  embedded: EmbeddingRequest[]
  predictions: PredictionRequest[]
  callers: Caller[]
  /** Events that were taken from the last generation. */
  read: number
  /** `true` if the last generation was read to its end, or left. */
  returned: boolean
}

export interface HostOptions {
  script?: Script
  /** `true` if requests need {@link KEY}. */
  keyed?: boolean
  ignored?: string[]
  overrides?: Partial<Host>
}

function find(tag: string, param: 'model' | 'tag' = 'model'): Loadable {
  const types = new Map<string, Loadable['type']>([
    [TINY.tag, 'model'],
    [EMBEDDER, 'predictor'],
  ])
  const type = types.get(tag)
  if (type) return { tag, name: tag, type, bytes: 0, load: () => undefined }
  throw new InoriginError('not_found', `There is no ${param} ${tag}.`, {
    code: 'model_not_found',
    param,
  })
}

/** A host whose model writes the script. */
export function scriptedHost({
  script = HELLO,
  keyed = false,
  ignored = [],
  overrides = {},
}: HostOptions = {}): ScriptedHost {
  const authorize = createAuthorization(keyed ? [KEY] : null)
  const scripted = createScriptedHost({
    models: [{ tag: TINY.tag, answers: () => '' }],
    predictors: [{ ...AREA, predict: () => ({ area: 1 }) }],
    embedders: [
      { tag: EMBEDDER, dimensions: 3, embed: ({ length }) => [length, length / 3, -length] },
    ],
    find,
    load: async () => undefined,
    play: (_answer, _request, signal) => play(script, host, signal),
  })
  const { generate, embed, predictor } = scripted.host
  const findResource = (sha256: string): void => {
    if (sha256 !== DIGEST) throw new InoriginError('not_found', 'There is no such resource.')
  }
  const methods: Partial<Host> = {
    models: async () => [TINY, SEEING],
    async generate(request, caller) {
      const { events } = await generate(request, caller)
      return { events: withIgnored(events, ignored) }
    },
    async countTokens(request) {
      host.requests.push(request)
      return 42
    },
    async embed(request, caller) {
      const embeddings = await embed(request, caller)
      host.embedded.push(request)
      return embeddings
    },
    ...createTestBackground((request, caller) => host.generate(request, caller)),
    async predictor(tag, caller) {
      await predictor(tag, caller)
      return { ...AREA, secret: 'of the host' } as Predictor
    },
    async createPrediction(request) {
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
    async resourceInfo(sha256) {
      findResource(sha256)
      return { ...RESOURCE, bytes: 10 }
    },
    async resource(sha256) {
      findResource(sha256)
      return { ...RESOURCE, blob: new Blob(['0123456789']) }
    },
  }
  const guarded = withAuthorization((caller) => {
    host.callers.push(caller)
    authorize(caller)
  })({ ...scripted.host, ...methods })
  const host: ScriptedHost = {
    ...guarded,
    ...overrides,
    requests: scripted.requests,
    embedded: [],
    predictions: [],
    callers: [],
    read: 0,
    returned: false,
  }
  return host
}

async function* withIgnored(
  events: AsyncIterable<AcceptedEvent | GenerationEvent>,
  ignored: readonly string[],
): AsyncGenerator<AcceptedEvent | GenerationEvent> {
  for await (const event of events) yield event.type === 'accepted' ? { ...event, ignored } : event
}

async function* play(
  script: Script,
  host: ScriptedHost,
  signal: AbortSignal,
): AsyncGenerator<GenerationEvent> {
  host.read = 0
  host.returned = false
  try {
    for (const event of script) {
      signal.throwIfAborted()
      if (event instanceof Error) throw event
      host.read += 1
      yield event
    }
  } finally {
    host.returned = true
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

/** The handler as the `fetch` of an SDK. */
export function fetchOf(host: Host): typeof fetch {
  return (input, init) => handle(new Request(input, init), host)
}

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const item of items) list.push(item)
  return list
}

export const chatOf = (fields: object = {}) => ({
  model: TINY.tag,
  messages: [{ role: 'user', content: 'Hi' }],
  ...fields,
})

export const messageOf = (fields: object = {}) => ({ ...chatOf(), max_tokens: 100, ...fields })

/** The error of a response, after a check of everything that every error has. */
export async function errorOf(response: Response, status: number): Promise<WireError> {
  const text = await response.text()
  const headers = Object.fromEntries(response.headers)
  ensure(response.status === status, `status ${response.status} instead of ${status}: ${text}`)
  const { 'content-type': type, 'cache-control': caching, 'request-id': id = '' } = headers
  ensure(type === 'application/json' && caching === 'no-store', `headers of ${text}`)
  ensure(/^req_[0-9a-f]{24}$/.test(id) && headers['x-request-id'] === id, `request-id ${id}`)
  return parseErrorBody(text, headers)
}
