/** The entry point of a page: `serve()` makes the page's origin answer `/v1`. */
import type { UpstreamServer } from './allowed-servers.ts'
import type { CatalogInput } from './catalog/schema.ts'
import { type PageControl, takeControlIfPossible, warnOfEarlyRequests } from './control.ts'
import { createServer } from './create-server.ts'
import { InoriginError } from './error.ts'
import { digestOptions, type HostSetup } from './host/messages.ts'
import type { PageSetup } from './host/tab/host-thread.ts'
import { hostPage, type HostPage } from './host/tab/page.ts'
import { remote } from './link/ask.ts'
import { predictDirectly } from './link/direct-predict.ts'
import { type Link, unreachable } from './link/link.ts'
import { holdPageLock } from './link/locks.ts'
import {
  ASSETS_PARAM,
  HEARTBEAT_INTERVAL_MS,
  ISOLATE_PARAM,
  OFFLINE_PARAM,
  type PageToWorker,
  PROTOCOL,
} from './link/protocol.ts'
import { getWorkerStatus, postToWorker, repeat, type WorkerScript } from './register.ts'
import type { Server } from './server.ts'
import { HOST_SERVICE_METHODS } from './types/control.ts'
import type { Device, HostService, Precision, Tag } from './types/index.ts'
import { assertKnownOptions, type OptionNames, parseFlag, parseTag } from './validate-arguments.ts'

/** Options of {@link serve}. */
export interface ServeOptions {
  /** Catalog, or its URL, to use in addition to the default one. Default: only the default one. */
  catalog?: string | URL | CatalogInput
  /** URL of the service worker script. Its folder is the default scope. Default: `/sw.js`. */
  worker?: string | URL
  /** Type of the script: `module` for an app's own module service worker. Default: `classic`. */
  workerType?: WorkerType
  /** Scope of the service worker. Default: the folder of its script. */
  scope?: string | URL
  /** URL of the folder that `inorigin init` created. Default: `inorigin/` next to the script. */
  assets?: string | URL
  /**
   * API keys to accept, as `Authorization: Bearer` or `x-api-key`. Default: any key, or none.
   * `GET /v1/resources/{sha256}` needs no key, because the files of the catalog are public.
   */
  apiKeys?: readonly string[]
  /** Device that models run on. Default: `auto`, the best implementation for this device. */
  device?: Device | 'auto'
  /**
   * Precision of language models whose catalog entry names none. With `fast`, models on WASM may round
   * weights and activations to 8 bits, which changes some tokens. `exact` computes with the values of
   * the files and, of a hub's precisions, prefers those that change the answers least; it is slower
   * and needs more memory. Default: `fast`.
   */
  precision?: Precision
  /**
   * Tag of a model to load as soon as the server has started, so that the first request waits less. Its
   * requests wait for the load and get its error. Default: a model is loaded by its first request.
   */
  model?: Tag
  /**
   * `true` to isolate the pages of the scope, so that WASM uses threads. The service worker then
   * adds headers to navigations, and `serve()` reloads the page once on the first visit. If the user has
   * begun to use the page, it is not reloaded, and the next navigation isolates it. Pass the same value on
   * every page of the scope. Default: `false`.
   */
  isolate?: boolean
  /**
   * `true` to keep the library's own files in Cache Storage, and a copy of the catalog, so that the
   * models answer without a network once they were used. `false` keeps none of these, and deletes
   * those that were kept. Pass the same value on every page of the scope. Default: `true`.
   */
  offline?: boolean
  /**
   * Servers that may answer in place of this device, in addition to those of this origin and those
   * of a catalog that is passed as a document. Without this consent, the upstream URLs of a catalog
   * from a URL are not used. Default: none.
   */
  upstreams?: readonly (string | URL | UpstreamServer)[]
  /**
   * URLs from which the host fetches images that requests name by an https URL, also from below
   * them. Their servers must allow the page by CORS. Default: none; images come in the request.
   */
  imageUrls?: readonly (string | URL)[]
  /**
   * Callback for changes of {@link Server.controlled}. The value is `false` when the page lost its
   * service worker: to a response with `Clear-Site-Data: "storage"`, or to a crash while a new
   * version took over. It is `true` when the page is controlled again. In between,
   * `fetch('/v1/...')` reaches the web server, including its prompt and API key.
   */
  onControlChange?: (controlled: boolean) => void
  /** Signal that cancels the start, and later closes the server. */
  signal?: AbortSignal
}

const SERVE_OPTIONS: OptionNames<ServeOptions> = {
  catalog: true,
  worker: true,
  workerType: true,
  scope: true,
  assets: true,
  apiKeys: true,
  device: true,
  precision: true,
  model: true,
  isolate: true,
  offline: true,
  upstreams: true,
  imageUrls: true,
  onControlChange: true,
  signal: true,
}

/** Attempts to reach a host at the start. After a failure, the app has no server to try again. */
const FIRST_CALL_ATTEMPTS = 6

/**
 * Turns this page's origin into an inference server. Resolves when the service worker controls the
 * page and `/v1` answers.
 *
 * A page without a service worker, for example in a private window, hosts its own models. Then
 * `server.controlled` is `false`, and only `server.fetch` answers.
 *
 * @example
 * ```ts
 * const server = await serve()
 * const response = await fetch('/v1/chat/completions', {
 *   method: 'POST',
 *   headers: { 'content-type': 'application/json' },
 *   body: JSON.stringify({
 *     model: '@inorigin/guide',
 *     messages: [{ role: 'user', content: 'What is inorigin?' }],
 *   }),
 * })
 * ```
 * @throws InoriginError `invalid_request` for invalid options; `unavailable` if the page is not a
 * secure context, or if the service worker or the dedicated worker cannot start.
 */
export async function serve(options: ServeOptions = {}): Promise<Server> {
  if (!isSecureContext) {
    const what = 'Service workers and WebGPU need a secure context.'
    const message = `${what} Serve the page over https or from localhost.`
    throw new InoriginError('unavailable', message, { code: 'insecure_context' })
  }
  assertKnownOptions(options, SERVE_OPTIONS)
  const located = locateScript(options)
  const model = options.model === undefined ? undefined : parseTag(options.model, 'model')
  const setup = await toHostSetup(options, located)
  const script = withParams(located, options, setup)
  const closing = new AbortController()
  options.signal?.throwIfAborted()
  options.signal?.addEventListener('abort', () => closing.abort(options.signal?.reason))

  const used = watchForUse()
  const hosting = new Hosting(setup)
  const wasUncontrolled = !navigator.serviceWorker?.controller
  const control = await takeControlIfPossible(script, closing.signal, {
    onLost: () => options.onControlChange?.(false),
    async onRegained() {
      await hosting.followControl()
      options.onControlChange?.(true)
    },
  })
  performance.mark('inorigin:controlled')
  if (control && wasUncontrolled) warnOfEarlyRequests(script.scope)
  if (control?.isShared && options.isolate && wasUncontrolled)
    await reloadToIsolate(control.registration, used)
  closing.signal.throwIfAborted()
  if (control && options.isolate) keepAwake(control, closing.signal)
  closing.signal.addEventListener('abort', () => hosting.close())
  try {
    await hosting.start(control)
    const { link } = hosting
    const host = remote<HostService>(link, HOST_SERVICE_METHODS)
    const differences = await listDifferences(link, setup, closing.signal)
    if (differences.length > 0) console.warn(describeDifferences(differences, hosting.isHere))
    if (hosting.isAlone) console.warn(OWN_HOST)
    const server = createServer({
      scope: script.scope,
      host: { ...host, ...predictDirectly(link, host) },
      differences,
      isControlled: () => control?.controlled ?? false,
      closing: closing.signal,
      close: () => closing.abort(),
    })
    if (model !== undefined)
      server.models.load(model, { signal: closing.signal }).catch((error: unknown) => {
        if (!closing.signal.aborted) console.warn(`inorigin: ${model} was not loaded.`, error)
      })
    return server
  } catch (error) {
    const given = closing.signal.aborted ? closing.signal.reason : error
    closing.abort()
    throw given
  }
}

async function listDifferences(link: Link, setup: PageSetup, signal: AbortSignal) {
  const patientLink = { ...link, maxAttempts: FIRST_CALL_ATTEMPTS }
  const host = remote<HostService>(patientLink, HOST_SERVICE_METHODS)
  return host.compareOptions(await digestOptions(setup), { key: null, signal })
}

function locateScript(options: ServeOptions): WorkerScript {
  const url = new URL(options.worker ?? '/sw.js', document.baseURI)
  const scope = new URL(options.scope ?? '.', options.scope ? document.baseURI : url)
  if (url.origin !== location.origin)
    throw invalidOption('worker', `worker must be a URL on this page's origin, not ${url.href}.`)
  if (!location.href.startsWith(scope.href)) {
    const what = `This page, ${location.pathname}, is outside ${scope.pathname}, the scope of`
    const todo = `${url.pathname}. Pass a \`worker\` script in the page's folder or above it.`
    throw invalidOption('worker', `${what} ${todo}`)
  }
  return { url, scope: scope.href, type: options.workerType ?? 'classic' }
}

function withParams(script: WorkerScript, options: ServeOptions, { assets, offline }: HostSetup) {
  const url = new URL(script.url)
  const byDefault = new URL('inorigin/', url).href
  if (parseFlag('isolate', options.isolate, false)) url.searchParams.set(ISOLATE_PARAM, 'true')
  if (!offline) url.searchParams.set(OFFLINE_PARAM, 'false')
  else if (assets !== byDefault) url.searchParams.set(ASSETS_PARAM, new URL(assets).pathname)
  return { ...script, url }
}

async function toHostSetup(options: ServeOptions, script: WorkerScript): Promise<PageSetup> {
  const { apiKeys, catalog, device = 'auto', precision = 'fast' } = options
  // A string has `includes`, too: every part of it would be accepted as a key.
  if (apiKeys !== undefined && !(Array.isArray(apiKeys) && apiKeys.every(isKey))) {
    const what =
      'apiKeys must be an array of printable ASCII strings without leading or trailing spaces.'
    throw invalidOption('apiKeys', `${what} Omit it to accept any key.`)
  }
  if (!['auto', 'webgpu', 'wasm'].includes(device))
    throw invalidOption('device', `device must be auto, webgpu or wasm, not ${String(device)}.`)
  if (precision !== 'fast' && precision !== 'exact') {
    const message = `precision must be fast or exact, not ${String(precision)}.`
    throw invalidOption('precision', message)
  }
  const byUrl = typeof catalog === 'string' || catalog instanceof URL
  const assets = new URL(
    options.assets ?? 'inorigin/',
    options.assets ? document.baseURI : script.url,
  )
  if (assets.origin !== location.origin)
    throw invalidOption('assets', `assets must be a URL on this page's origin, not ${assets.href}.`)
  // Workers of an isolated page start only if the service worker adds headers to their scripts.
  if (options.isolate && !assets.href.startsWith(script.scope)) {
    const what = `isolate needs assets inside the scope ${script.scope}, not ${assets.href}.`
    throw invalidOption('isolate', `${what} Pass another \`scope\` or \`assets\`.`)
  }
  return {
    scope: script.scope,
    assets: assets.href.endsWith('/') ? assets.href : `${assets.href}/`,
    catalog: byUrl ? new URL(catalog, document.baseURI).href : catalog ? toPlain(catalog) : null,
    apiKeys: apiKeys ?? null,
    device,
    precision,
    offline: parseFlag('offline', options.offline, true),
    ...(await parseServers(options)),
  }
}

/** Parses the servers that the app allows. Most apps allow none, and do not load the parsers. */
async function parseServers({ upstreams, imageUrls }: ServeOptions) {
  if (upstreams === undefined && imageUrls === undefined)
    return { upstreams: [], getHeaders: async () => ({}), imageUrls: [] }
  const { parseImageUrls, parseUpstreams } = await import('./allowed-servers.ts')
  return { ...parseUpstreams(upstreams), imageUrls: parseImageUrls(imageUrls) }
}

const isKey = (value: unknown) =>
  typeof value === 'string' && /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(value)

/** Returns a plain copy of the catalog. Throws `invalid_request` if it cannot be cloned. */
function toPlain(catalog: CatalogInput): CatalogInput {
  try {
    return structuredClone(catalog)
  } catch {
    throw invalidOption('catalog', 'catalog must be a JSON document or the URL of one.')
  }
}

const invalidOption = (param: string, message: string) =>
  new InoriginError('invalid_request', message, { param })

function describeDifferences(names: string[], isHere: boolean): string {
  const other = isHere ? 'an earlier server of this page' : 'the hosting tab'
  const what = `inorigin: ${other} has different options than this one: ${names.join(', ')}.`
  return `${what} Its options apply here too, until it is closed.`
}

const OWN_HOST =
  'inorigin: this page has no service worker of its version, so fetch("/v1/...") does not reach it. ' +
  'Use server.fetch instead.'

/** Number of attempts to reach a host: one may be starting, or the next tab may be taking over. */
const HOST_ATTEMPTS = 3
const HOST_ACK_TIMEOUT_MS = 8_000

/** The link of one server to its host, and the candidacy of its page. */
class Hosting {
  readonly #setup: PageSetup
  #control: PageControl | undefined
  #page: HostPage | undefined
  /** `true` if this page hosts for itself only. */
  isAlone = false

  /** Link to the host, which may be this page. */
  readonly link: Link = {
    // The service worker forwards the port to the hosting tab, if that is another one.
    connect: (port, attempt) => {
      if (!this.#page) throw unreachable()
      if (this.isHere || !this.#control?.isShared) return this.#page.connect(port)
      const message: PageToWorker = { type: 'inorigin:forward', protocol: PROTOCOL, attempt }
      this.#control.registration.active?.postMessage(message, [port])
    },
    livenessLock: null,
    client: crypto.randomUUID(),
    maxAttempts: HOST_ATTEMPTS,
    ackTimeoutMs: HOST_ACK_TIMEOUT_MS,
  }

  constructor(setup: PageSetup) {
    this.#setup = setup
  }

  /** `true` if the host is in this page. */
  get isHere(): boolean {
    return this.#page?.hosting ?? false
  }

  /** Enters the election, or hosts for this page only without a control that is shared. */
  async start(control: PageControl | undefined): Promise<void> {
    this.#control = control
    this.isAlone = !control?.isShared
    this.#open()
    this.link.livenessLock = await holdPageLock()
  }

  /** Takes part with the locks that the page has after control was regained. */
  async followControl(): Promise<void> {
    this.link.livenessLock = await holdPageLock()
    if (!this.isAlone) return this.#page?.followLocks()
    // Open streams of the host that was for this page only continue on the host of all pages.
    this.isAlone = false
    this.#page?.close()
    this.#open()
  }

  close(): void {
    this.#page?.close()
  }

  #open(): void {
    const container = this.isAlone ? undefined : navigator.serviceWorker
    this.#page = hostPage(this.#setup, container, (message) => {
      if (this.#control) postToWorker(this.#control.registration, message)
    })
  }
}

// Page side of isolation: the service worker can only isolate pages that it saw load.

const RELOAD_TIMEOUT_MS = 10_000

/** Events by which a user begins to use a page. */
const ACTIONS = ['keydown', 'pointerdown', 'beforeinput', 'drop'] as const

/** Returns a signal that aborts when the user begins to use the page. */
function watchForUse(): AbortSignal {
  const used = new AbortController()
  const { signal } = used
  for (const action of ACTIONS)
    addEventListener(action, () => used.abort(), { capture: true, signal })
  return signal
}

/**
 * Isolates a page that the worker did not see: reloads it. If the user begins to use it, even while the new
 * page is on its way, it stays, and the next navigation isolates it.
 */
async function reloadToIsolate(
  { active, scope }: ServiceWorkerRegistration,
  used: AbortSignal,
): Promise<void> {
  // A frame is isolated only together with its parent, or when it is next loaded.
  if (crossOriginIsolated || window.top !== window || !active) return
  const status = await getWorkerStatus(active)
  if (!status?.isolates || wasReloaded(scope) || used.aborted) return
  sessionStorage.setItem(markOf(scope), 'true')
  location.reload()
  await new Promise<void>((resolve) => {
    used.addEventListener('abort', () => resolve(stop()))
    // A `beforeunload` listener of the app may let the user cancel it.
    setTimeout(resolve, RELOAD_TIMEOUT_MS)
  })
}

/** Keeps the worker running in Firefox, which stops an idle one, and with it running downloads. */
function keepAwake(control: PageControl, signal: AbortSignal): void {
  if (!navigator.userAgent.includes('Firefox/')) return
  const pulse = () => postToWorker(control.registration, { type: 'inorigin:pulse' })
  repeat(pulse, HEARTBEAT_INTERVAL_MS, signal)
}

/** Returns `true` if this page was reloaded. A second time could become a loop in some browsers. */
function wasReloaded(scope: string): boolean {
  const [navigation] = performance.getEntriesByType('navigation') as PerformanceNavigationTiming[]
  // WebKitGTK 2.50 reports `navigate` after `location.reload()`, so there is a mark, too.
  return navigation?.type === 'reload' || sessionStorage.getItem(markOf(scope)) !== null
}

const markOf = (scope: string): string => `inorigin:reloaded:${scope}`
