/** Measurements of a browser that run in a page; `FACTS_WORKER` is the service worker that they need. */

/** Says what exists in it, holds a lock, and answers `/stream` and `/pending`. */
export const FACTS_WORKER = `
const seen = { requestAborted: false, canceledAt: null }
const hasGpu = 'gpu' in navigator
self.addEventListener('install', () => self.skipWaiting())
self.addEventListener('activate', (event) => event.waitUntil(clients.claim()))
self.addEventListener('message', async ({ data, ports: [port] }) => {
  if (data === 'hold') {
    await new Promise((resolve) =>
      navigator.locks.request('alive', () => (resolve(), new Promise(() => {}))))
  }
  const imports = data === 'facts' && await import('/empty.js').then(() => true, () => false)
  port?.postMessage({ ...seen, hasGpu, imports })
})
function stream(seconds) {
  let timer
  return new ReadableStream({
    start(controller) {
      const end = Date.now() + seconds * 1000
      timer = setInterval(() => {
        controller.enqueue(new Uint8Array(1))
        if (Date.now() < end) return
        clearInterval(timer)
        controller.close()
      }, 1000)
    },
    cancel() {
      clearInterval(timer)
      seen.canceledAt = Date.now()
    },
  })
}
self.addEventListener('fetch', (event) => {
  const { pathname, searchParams } = new URL(event.request.url)
  if (pathname === '/stream') {
    const seconds = Number(searchParams.get('seconds'))
    if (searchParams.has('wait')) {
      event.waitUntil(new Promise((resolve) => setTimeout(resolve, seconds * 1000)))
    }
    event.respondWith(new Response(stream(seconds)))
  }
  if (pathname === '/pending') {
    event.request.signal.addEventListener('abort', () => (seen.requestAborted = true))
    event.respondWith(new Promise(() => {}))
  }
})
`

export interface WorkerFacts {
  requestAborted: boolean
  canceledAt: number | null
  hasGpu: boolean
  imports: boolean
}

/** Functions that the page of the measurements has as globals. */
export const FACTS_SCRIPT = `<script>
  async function registerWorker() {
    await navigator.serviceWorker.register('/sw.js')
    if (navigator.serviceWorker.controller) return
    await new Promise((resolve) =>
      navigator.serviceWorker.addEventListener('controllerchange', resolve, { once: true }))
  }
  function tell(data) {
    const { port1, port2 } = new MessageChannel()
    navigator.serviceWorker.controller.postMessage(data, [port2])
    return new Promise((resolve) => (port1.onmessage = (event) => resolve(event.data)))
  }
</script>`

export interface InPage {
  registerWorker(): Promise<void>
  tell(data: string): Promise<WorkerFacts>
}

/** Resolves with the names of what the page has, and with numbers that it is told. */
export async function readFeatures() {
  const { registerWorker, tell } = globalThis as unknown as InPage
  await registerWorker()
  const { hasGpu: workerHasGpu, imports } = await tell('facts')
  const storage: Partial<StorageManager> | undefined = navigator.storage
  const transfers = (): boolean => {
    const stream = new ReadableStream()
    try {
      new MessageChannel().port1.postMessage(stream, [stream])
      return true
    } catch {
      return false
    }
  }
  // Firefox asks the user, and nobody answers here.
  // oxlint-disable-next-line tests/no-fixed-wait -- It is how long the user has.
  const asking = new Promise<string>((resolve) => setTimeout(() => resolve('asks'), 5_000))
  const adapter = await navigator.gpu?.requestAdapter().catch(() => null)
  return {
    userAgent: navigator.userAgent,
    webgpu: 'gpu' in navigator,
    adapter: adapter ? adapter.info.vendor || adapter.info.description || 'unnamed' : null,
    webgpuInServiceWorker: workerHasGpu,
    importInServiceWorker: imports,
    jspi: 'Suspending' in WebAssembly,
    sharedMemory: typeof SharedArrayBuffer === 'function',
    isolated: crossOriginIsolated,
    transferableStreams: transfers(),
    deviceMemory: 'deviceMemory' in navigator ? navigator.deviceMemory : null,
    quota: (await storage?.estimate?.())?.quota ?? null,
    persist: await Promise.race([storage?.persist?.() ?? 'absent', asking]),
    fileSystem: typeof storage?.getDirectory === 'function',
  }
}

/** Resolves with the seconds until an idle service worker is stopped, or `null` after two minutes. */
export async function measureIdle(): Promise<number | null> {
  const { registerWorker, tell } = globalThis as unknown as InPage
  await registerWorker()
  await tell('hold')
  const start = Date.now()
  const signal = AbortSignal.timeout(120_000)
  return navigator.locks
    .request('alive', { signal }, () => (Date.now() - start) / 1000)
    .then(
      (seconds) => seconds,
      () => null,
    )
}

/** Resolves with the seconds after which a stream of a hundred seconds ended, and how it ended. */
export async function measureStream(variant: 'silent' | 'pulse' | 'wait') {
  const { registerWorker } = globalThis as unknown as InPage
  await registerWorker()
  const { controller } = navigator.serviceWorker
  const pulse = () => controller?.postMessage('pulse')
  const timer = variant === 'pulse' ? setInterval(pulse, 10_000) : undefined
  const start = Date.now()
  const response = await fetch(`/stream?seconds=100${variant === 'wait' ? '&wait' : ''}`)
  const reader = response.body!.getReader()
  let end = 'done'
  for (let done = false; !done;) {
    done = await reader.read().then(
      (result) => result.done,
      (error: Error) => {
        end = String(error)
        return true
      },
    )
  }
  clearInterval(timer)
  return { seconds: (Date.now() - start) / 1000, end }
}

/** Resolves with what the service worker learns of a request that its page gives up. */
export async function measureAborts() {
  const { registerWorker, tell } = globalThis as unknown as InPage
  await registerWorker()
  const latency = async (giveUp: 'abort' | 'cancel'): Promise<number | null> => {
    const controller = new AbortController()
    const response = await fetch('/stream?seconds=20', { signal: controller.signal })
    const reader = response.body!.getReader()
    await reader.read()
    const before = (await tell('seen')).canceledAt
    const at = Date.now()
    if (giveUp === 'abort') controller.abort()
    else void reader.cancel()
    while (Date.now() < at + 10_000) {
      const { canceledAt } = await tell('seen')
      if (canceledAt !== before && canceledAt !== null) return canceledAt - at
    }
    return null
  }
  const [abort, cancel] = [await latency('abort'), await latency('cancel')]
  const controller = new AbortController()
  const pending = fetch('/pending', { signal: controller.signal }).catch(() => undefined)
  await tell('seen')
  controller.abort()
  await pending
  const at = Date.now()
  let requestAborted = false
  while (!requestAborted && Date.now() < at + 3_000) ({ requestAborted } = await tell('seen'))
  return { abort, cancel, requestAborted }
}

/** Stores blobs of 16 MiB, up to 2 GiB. Resolves with the bytes stored, and what ended it. */
export async function measureStorage(): Promise<{ bytes: number; error: string | null }> {
  const settle = <Value>(request: IDBRequest<Value>) =>
    new Promise<Value>((resolve, reject) => {
      request.onsuccess = () => resolve(request.result)
      request.onerror = () => reject(request.error)
    })
  const opening = indexedDB.open('facts')
  opening.onupgradeneeded = () => opening.result.createObjectStore('blobs')
  const database = await settle(opening)
  const content = new Uint8Array(2 ** 24)
  for (let at = 0; at < content.length; at += 2 ** 16) {
    crypto.getRandomValues(content.subarray(at, at + 2 ** 16))
  }
  let bytes = 0
  let error: string | null = null
  while (bytes < 2 ** 31 && error === null) {
    const writing = database.transaction('blobs', 'readwrite')
    const put = settle(writing.objectStore('blobs').put(new Blob([content]), bytes))
    const committed = new Promise<void>((resolve, reject) => {
      writing.oncomplete = () => resolve()
      writing.onabort = () => reject(writing.error)
    })
    try {
      await Promise.all([put, committed])
      bytes += content.length
    } catch (thrown) {
      error = String(thrown)
    }
  }
  database.close()
  await settle(indexedDB.deleteDatabase('facts'))
  return { bytes, error }
}
