/**
 * A server for an app's own tests, `inorigin/testing`: the endpoints of `/v1` with scripted answers
 * in place of models. It runs in Node.js and in a page, without service worker and weights.
 */
import {
  createAuthorization,
  Trace,
  withAuthorization,
  withTrace,
} from '../../host/requests/middleware.ts'
import * as names from '../../server.ts'
import type { PredictOptions, Server, TaskOptions } from '../../server.ts'
import type {
  Caller,
  GenerationRequest,
  LoadProgress,
  PredictionStep,
  Tag,
} from '../../types/index.ts'
import { InoriginError } from '../../error.ts'
import {
  assertKnownOptions,
  neverAborted,
  type OptionNames,
  parseOptions,
} from '../../validate-arguments.ts'
import { handle } from '../../wire/handler.ts'
import { createLoads, createScriptedHost, type Loadable, type TagParam } from './scripted-host.ts'
import type { TestEntry, TestServerOptions } from './answers.ts'

/** The parts of a server that need no browser, and a record of the requests. */
export interface TestServer extends Pick<
  Server,
  'fetch' | 'models' | 'predict' | 'trace' | 'baseURL' | 'origin'
> {
  /** The generation requests so far, parsed: model, messages, tools, sampling and limits. */
  readonly requests: readonly GenerationRequest[]
}

const SERVER_OPTIONS: OptionNames<TestServerOptions> = {
  models: true,
  predictors: true,
  embedders: true,
  apiKeys: true,
  origin: true,
}

const DEFAULT_BYTES = 1_000

/**
 * Creates a server whose models give scripted answers. The same requests get the same answers.
 *
 * @example
 * ```ts
 * const server = createTestServer({
 *   models: [{ tag: '@inorigin/guide', answers: ['Hello', { toolCalls: [call] }] }],
 * })
 * const client = new OpenAI({ baseURL: server.baseURL, fetch: server.fetch, apiKey: 'none' })
 * ```
 */
export function createTestServer(options: TestServerOptions = {}): TestServer {
  assertKnownOptions(options, SERVER_OPTIONS)
  const { models = [], predictors = [], embedders = [], apiKeys = null } = options
  const origin = options.origin ?? globalThis.location?.origin ?? 'http://localhost'
  const trace = new Trace()
  const items = [
    ...models.map((model) => toLoadable(model, 'model')),
    ...[...predictors, ...embedders].map((predictor) => toLoadable(predictor, 'predictor')),
  ]
  const loads = createLoads(items, trace)

  function find(tag: Tag, param: TagParam = 'model'): Loadable {
    const item = items.find((one) => one.tag === tag)
    if (item) return item
    const known = items.map((one) => one.tag).join(', ') || 'none'
    const what = `There is no model or predictor ${tag} in this test server. It has: ${known}.`
    throw new InoriginError('not_found', what, { code: 'model_not_found', param })
  }

  const load = async (tag: Tag, { signal, onEvent }: Caller<LoadProgress>) =>
    loads.load(find(tag), signal, onEvent)
  const scripted = createScriptedHost({ models, predictors, embedders, load, find })
  const host = withTrace(trace)(withAuthorization(createAuthorization(apiKeys))(scripted.host))
  return {
    requests: scripted.requests,
    origin,
    baseURL: `${origin}/v1`,
    async fetch(input, init) {
      const address = input instanceof Request ? input : new URL(input, origin)
      const request = new Request(address, init)
      const { origin: target, pathname } = new URL(request.url)
      if (target !== new URL(origin).origin || !pathname.startsWith('/v1/')) return fetch(request)
      return handle(request, host)
    },
    // The inputs and outputs of a tag are known only to the type system, so the type is cast.
    predict: (async (tag: Tag, inputs: Record<string, unknown>, task?: PredictOptions) => {
      const caller = toCaller(parseOptions(task, names.PREDICT_OPTIONS))
      return host.predict(tag, inputs, undefined, caller)
    }) as Server['predict'],
    trace: (task) => trace.read(parseOptions(task, names.SIGNAL_ONLY).signal),
    models: {
      list: async () => loads.states(),
      load: async (tag, task) => load(tag, toCaller(parseOptions(task, names.LOAD_OPTIONS))),
      progress: (task) => loads.progress(parseOptions(task, names.SIGNAL_ONLY).signal),
      pause: async (tag) => loads.pause(find(tag).tag),
      cancel: async (tag) => loads.pause(find(tag).tag),
      unload: async (tag) => loads.unload(find(tag).tag),
      async remove(tag) {
        loads.unload(find(tag).tag)
        loads.remove(tag)
      },
    },
  }
}

function toLoadable(entry: TestEntry, type: Loadable['type']): Loadable {
  const { tag, name = tag, bytes = DEFAULT_BYTES, load = () => undefined } = entry
  return { tag, name, type, bytes, load }
}

const toCaller = ({ signal = neverAborted, onProgress }: TaskOptions): Caller<PredictionStep> => ({
  key: null,
  signal,
  onEvent: (step) => 'phase' in step && onProgress?.(step),
})

export type {
  ScriptedAnswer,
  ScriptedCall,
  TestEmbedder,
  TestModel,
  TestPredictor,
  TestServerOptions,
} from './answers.ts'
