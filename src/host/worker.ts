/** Entry of the host's dedicated worker. It opens the host and answers the ports from its page. */
import { answer, type Handlers } from '../link/answer.ts'
import { holdLivenessLock } from '../link/liveness.ts'
import {
  PROTOCOL,
  type HostCalls,
  type HostSetup,
  type HostStreams,
  type HostToPage,
  type PageToHost,
} from '../link/protocol.ts'
import { HEARTBEAT_INTERVAL_MS } from './requests/heartbeat.ts'
import { openHost } from './open-host.ts'

type HostHandlers = Handlers<HostCalls, HostStreams>

let handlers: Promise<HostHandlers> | undefined
/** Number of requests in progress. */
let openRequests = 0
/** Number of requests in progress that only watch. No service worker waits for them. */
let watchRequests = 0

self.onmessage = (event: MessageEvent<PageToHost>) => {
  const message = event.data
  if (message.type === 'start') {
    handlers = start(message.setup)
    return
  }
  const port = event.ports[0]
  if (port) void answerRequest(port)
}

// The page forwards this heartbeat to the service worker, which browsers stop after 30 s of
// silence. The timer runs here because browsers throttle the timers of a hidden page, but not of a
// dedicated worker.
setInterval(() => {
  if (openRequests > watchRequests) postToPage({ type: 'pulse' })
}, HEARTBEAT_INTERVAL_MS)

async function start(setup: HostSetup): Promise<HostHandlers> {
  const livenessLock = navigator.locks ? await holdLivenessLock(navigator.locks, 'host') : null
  postToPage({ type: 'started', protocol: PROTOCOL, life: livenessLock })
  return {
    livenessLock,
    ...createHandlers(openHost(setup, () => postToPage({ type: 'downloading' }))),
  }
}

async function answerRequest(port: MessagePort): Promise<void> {
  if (!handlers) return
  openRequests += 1
  try {
    await answer(port, await handlers)
  } finally {
    openRequests -= 1
  }
}

function postToPage(message: HostToPage): void {
  self.postMessage(message)
}

/** Counts the request as a watching one until its signal aborts. */
function countWatchRequest(signal: AbortSignal): void {
  watchRequests += 1
  signal.addEventListener('abort', () => (watchRequests -= 1), { once: true })
}

function createHandlers({
  host,
  control,
  sendDirectPort,
}: ReturnType<typeof openHost>): Pick<HostHandlers, 'calls' | 'streams'> {
  return {
    calls: {
      authorize: (_args, caller) => host.authorize(caller),
      models: (_args, caller) => host.models(caller),
      countTokens: ([request], caller) => host.countTokens(request, caller),
      keepResponse: ([response], caller) => host.keepResponse(response, caller),
      keptResponse: ([id], caller) => host.keptResponse(id, caller),
      keptItems: ([ids], caller) => host.keptItems(ids, caller),
      forgetResponse: ([id], caller) => host.forgetResponse(id, caller),
      predictor: ([tag], caller) => host.predictor(tag, caller),
      createPrediction: ([request], caller) => host.createPrediction(request, caller),
      resourceInfo: ([sha256], caller) => host.resourceInfo(sha256, caller),
      resource: ([sha256], caller) => host.resource(sha256, caller),
      list: () => control.list(),
      load: ([tag], { signal }, onProgress) => control.load(tag, signal, onProgress),
      unload: ([tag]) => control.unload(tag),
      remove: ([tag]) => control.remove(tag),
      usage: () => control.usage(),
      stored: () => control.stored(),
      storedFiles: () => control.storedFiles(),
      pin: ([tag, pinned]) => control.pin(tag, pinned),
      repair: ([tag], { signal }, onProgress) => control.repair(tag, signal, onProgress),
      clear: () => control.clear(),
      take: ([tag, files, wishes], { signal }, onProgress) =>
        control.take(tag, files, wishes, signal, onProgress),
      describe: ([tag]) => control.describe(tag),
      predict: ([tag, inputs, configuration], { signal }, onProgress) =>
        control.predict(tag, inputs, { configuration, signal, onProgress }),
      lend: ([tag, configuration], { signal }, sendPort) => {
        countWatchRequest(signal)
        return sendDirectPort(tag, configuration, signal, sendPort)
      },
      explain: ([tag], { signal }) => control.explain(tag, signal),
      compare: ([options], { signal }) => control.compare(options, signal),
    },
    streams: {
      generate: async ([request], caller) => {
        const { ignored, events } = await host.generate(request, caller)
        return { result: { ignored }, events }
      },
      runPredictor: async ([tag, inputs], caller) => ({
        result: undefined,
        events: await host.predict(tag, inputs, caller),
      }),
      embed: async ([request], caller) => ({
        result: undefined,
        events: await host.embed(request, caller),
      }),
      progress: async (_args, { signal }) => {
        countWatchRequest(signal)
        return { result: undefined, events: control.progress(signal) }
      },
    },
  }
}
