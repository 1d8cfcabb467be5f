/** Entry of the host's dedicated worker. It opens the host and answers the ports from its page. */
import { answer, type Answers } from '../link/answer.ts'
import { holdLife } from '../link/life.ts'
import {
  PROTOCOL,
  type HostCalls,
  type HostSetup,
  type HostStreams,
  type HostToPage,
  type PageToHost,
} from '../link/protocol.ts'
import { HEARTBEAT_INTERVAL } from './heartbeat.ts'
import { openHost } from './local.ts'

type HostAnswers = Answers<HostCalls, HostStreams>

let answers: Promise<HostAnswers> | undefined
/** Number of requests in progress. */
let open = 0
/** Number of requests in progress that only watch. No service worker waits for them. */
let watching = 0

self.onmessage = (event: MessageEvent<PageToHost>) => {
  const message = event.data
  if (message.type === 'start') {
    answers = start(message.setup)
    return
  }
  const port = event.ports[0]
  if (port) void serve(port)
}

// The page forwards this heartbeat to the service worker, which browsers stop after 30 s of
// silence. The timer runs here because browsers throttle the timers of a hidden page, but not of a
// dedicated worker.
setInterval(() => {
  if (open > watching) tell({ type: 'pulse' })
}, HEARTBEAT_INTERVAL)

async function start(setup: HostSetup): Promise<HostAnswers> {
  const life = navigator.locks ? await holdLife(navigator.locks, 'host') : null
  tell({ type: 'started', protocol: PROTOCOL, life })
  return { life, ...answersOf(openHost(setup, () => tell({ type: 'downloading' }))) }
}

async function serve(port: MessagePort): Promise<void> {
  if (!answers) return
  open += 1
  try {
    await answer(port, await answers)
  } finally {
    open -= 1
  }
}

function tell(message: HostToPage): void {
  self.postMessage(message)
}

/** Counts the request as a watching one until its signal aborts. */
function watch(signal: AbortSignal): void {
  watching += 1
  signal.addEventListener('abort', () => (watching -= 1), { once: true })
}

function answersOf({
  host,
  control,
  lend,
}: ReturnType<typeof openHost>): Pick<HostAnswers, 'calls' | 'streams'> {
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
      lend: ([tag, configuration], { signal }, tellPort) => {
        watch(signal)
        return lend(tag, configuration, signal, tellPort)
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
        watch(signal)
        return { result: undefined, events: control.progress(signal) }
      },
    },
  }
}
