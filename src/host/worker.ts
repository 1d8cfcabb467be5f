/** Entry of the host's dedicated worker. It opens the host and answers the ports from its page. */
import { answer } from '../link/answer.ts'
import { holdLivenessLock, listLivenessLocks } from '../link/locks.ts'
import { HEARTBEAT_INTERVAL_MS, PROTOCOL } from '../link/protocol.ts'
import { HOST_SERVICE_METHODS } from '../types/control.ts'
import type { HostToPage, PageToHost } from './messages.ts'
import { openHost } from './open-host.ts'
import { SoundDecoder } from './requests/transcriptions.ts'
import { UpstreamHeaders } from './requests/upstreams.ts'

type StartMessage = Extract<PageToHost, { type: 'start' }>

const upstreamHeaders = new UpstreamHeaders(postToPage)
const soundDecoder = new SoundDecoder(postToPage)
let started: ReturnType<typeof start> | undefined
/** Number of requests in progress. */
let openRequests = 0
/** Number of requests in progress that only watch. No service worker waits for them. */
let watchRequests = 0

self.onmessage = (event: MessageEvent<PageToHost>) => {
  const message = event.data
  if (message.type === 'start') {
    started = start(message)
    return
  }
  if (message.type === 'headers') return upstreamHeaders.receive(message)
  if (message.type === 'decoded') return soundDecoder.receive(message)
  const port = event.ports[0]
  if (port) void answerRequest(port)
}

// The page forwards this heartbeat to the service worker, which browsers stop after 30 s of
// silence. The timer runs here because browsers throttle the timers of a hidden page, but not of a
// dedicated worker.
setInterval(() => {
  if (openRequests > watchRequests) postToPage({ type: 'pulse' })
}, HEARTBEAT_INTERVAL_MS)

async function start({ setup, isElected, lastEnded, responses }: StartMessage) {
  const livenessLock = navigator.locks ? await holdLivenessLock(navigator.locks, 'host') : null
  postToPage({ type: 'started', protocol: PROTOCOL, life: livenessLock })
  const lives = { own: livenessLock, lastEnded, living: () => listLivenessLocks('host') }
  const service = openHost(
    setup,
    isElected,
    { lives, responses },
    {
      onDownload: () => postToPage({ type: 'downloading' }),
      // The page may hang or be frozen, so it may not know yet that it lost the election.
      onReplaced: () => self.close(),
      onWatch(signal) {
        watchRequests += 1
        signal.addEventListener('abort', () => (watchRequests -= 1), { once: true })
      },
      getUpstreamHeaders: (url, signal) => upstreamHeaders.request(url, signal),
      decodeSound: (file, signal) => soundDecoder.decode(file, signal),
    },
  )
  return { service, livenessLock }
}

async function answerRequest(port: MessagePort): Promise<void> {
  if (!started) return
  openRequests += 1
  try {
    const { service, livenessLock } = await started
    await answer(port, service, HOST_SERVICE_METHODS, livenessLock)
  } finally {
    openRequests -= 1
  }
}

function postToPage(message: HostToPage): void {
  self.postMessage(message)
}
