/** Page side: makes this page's origin answer `/v1`. */
import type { CatalogDocument } from './catalog/schema.ts'
import { takeControl, type ControlOptions, type PageControl } from './control.ts'
import { InoriginError } from './error.ts'
import { filesOf, optionsOf, tagOf } from './given.ts'
import { digestOptions } from './host/digest.ts'
import { hostPage, type HostPage } from './host/page.ts'
import type { Link } from './link/ask.ts'
import { holdLife } from './link/life.ts'
import { currentLocks } from './link/locks.ts'
import { PROTOCOL, type HostSetup, type PageToWorker } from './link/protocol.ts'
import { remoteControl, remoteHost } from './link/remote.ts'
import { tell, type Script } from './register.ts'
import { askPersistence } from './store/room.ts'
import type { PredictOptions, Server } from './server.ts'
import type { Control, Device, Host, Tag } from './types/index.ts'

/** What is served, and where it runs. */
export interface ServeOptions {
  /** A catalog, or its URL, in addition to the default one. Default: the default one alone. */
  catalog?: string | URL | CatalogDocument
  /** URL of the service worker script. Its folder is what is served. Default: `/sw.js`. */
  worker?: string | URL
  /** `module` for an app's own service worker that is a module. Default: `classic`. */
  workerType?: WorkerType
  /** What the service worker controls, where that is not the folder of its script. */
  scope?: string | URL
  /** URL of the folder that `inorigin init` filled. Default: `inorigin/` beside the script. */
  assets?: string | URL
  /**
   * The keys that are accepted, in either style. Default: any key, or none. `GET /v1/resources/{sha256}`
   * needs no key: its files are those of the catalog, which are public.
   */
  apiKeys?: readonly string[]
  /** Where models run. Default: `auto`, the best implementation for this device. */
  device?: Device | 'auto'
  /**
   * Called with the new value of {@link Server.controlled} when that changes: with `false` when a response
   * with `Clear-Site-Data: "storage"` has taken control of this page away, and with `true` when it is
   * back. Meanwhile `fetch('/v1/...')` reaches the web server, prompt and key included.
   */
  onControlChange?: (controlled: boolean) => void
  /** Aborting it gives up starting, and later closes the server. */
  signal?: AbortSignal
}

/** Looks for a host: one that is starting, or the next tab in line after one was closed. */
const HOST_ATTEMPTS = 3
const HOST_PATIENCE = 8_000

/** Of this page, however many servers it opens; freed by the browser with the page. */
let life: { locks: LockManager; name: Promise<string> } | undefined

/**
 * Makes this page's origin the inference server; resolves when the page is controlled and `/v1` answers.
 *
 * A page without service worker (a private window, say) is its own host: then `controlled` is false and
 * only `server.fetch` answers.
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
 * @throws InoriginError `invalid_request` for options that cannot work, `unavailable` when the page is
 * not secure, or the service worker or the dedicated worker cannot start; the message says what to do.
 */
export async function serve(options: ServeOptions = {}): Promise<Server> {
  if (!isSecureContext) throw insecure()
  const script = locate(options)
  const setup = setUp(options, script)
  const closing = new AbortController()
  options.signal?.throwIfAborted()
  options.signal?.addEventListener('abort', () => closing.abort(options.signal?.reason))

  const link: Link = {
    connect: (port, attempt) => connectVia(page, control, port, attempt),
    life: null,
    client: crypto.randomUUID(),
    attempts: HOST_ATTEMPTS,
    patience: HOST_PATIENCE,
  }
  const control = await controlOrNone(script, closing.signal, {
    onLost: () => options.onControlChange?.(false),
    async onRegained() {
      link.life = await holdPageLife()
      page.followLocks()
      options.onControlChange?.(true)
    },
  })
  closing.signal.throwIfAborted()
  const container = control && navigator.serviceWorker
  const toWorker = (message: PageToWorker) => control && tell(control.registration, message)
  const page = hostPage(setup, container, toWorker)
  closing.signal.addEventListener('abort', () => page.close())
  try {
    link.life = await holdPageLife()
    const models = remoteControl(link)
    const differences = await models.compare(await digestOptions(setup), closing.signal)
    if (differences.length > 0) console.warn(differs(differences))
    if (!control) console.warn(alone())
    return createServer({
      script,
      control: models,
      host: remoteHost(link),
      differences,
      isControlled: () => control?.controlled ?? false,
      close: () => closing.abort(),
    })
  } catch (error) {
    const given = closing.signal.aborted ? closing.signal.reason : error
    closing.abort()
    throw given
  }
}

function insecure(): InoriginError {
  const what = 'Browsers give service workers and WebGPU to secure pages only.'
  return new InoriginError('unavailable', `${what} Serve this one over https, or from localhost.`, {
    code: 'insecure_context',
  })
}

function locate(options: ServeOptions): Script {
  const url = new URL(options.worker ?? '/sw.js', document.baseURI)
  const scope = new URL(options.scope ?? '.', options.scope ? document.baseURI : url)
  if (url.origin !== location.origin) {
    throw invalid('worker', `The script ${url.href} is of another origin than this page.`)
  }
  if (!location.href.startsWith(scope.href)) {
    const what = `This page, ${location.pathname}, is outside ${scope.pathname}, which is what the`
    const todo = `service worker at ${url.pathname} can serve. Pass \`worker\` with one further up.`
    throw invalid('worker', `${what} ${todo}`)
  }
  return { url, scope: scope.href, type: options.workerType ?? 'classic' }
}

function setUp(options: ServeOptions, script: Script): HostSetup {
  const { apiKeys, catalog, device = 'auto' } = options
  // A text would count as the keys that it holds.
  if (apiKeys !== undefined && !(Array.isArray(apiKeys) && apiKeys.every(isKey))) {
    const what =
      'apiKeys must be an array of strings that a header can carry: ASCII, no outer spaces.'
    throw invalid('apiKeys', `${what} Leave it out to accept any key.`)
  }
  if (!['auto', 'webgpu', 'wasm'].includes(device)) {
    throw invalid('device', `device must be auto, webgpu or wasm, not ${String(device)}.`)
  }
  const byUrl = typeof catalog === 'string' || catalog instanceof URL
  const assets = new URL(
    options.assets ?? 'inorigin/',
    options.assets ? document.baseURI : script.url,
  )
  if (assets.origin !== location.origin) {
    throw invalid(
      'assets',
      `Workers cannot be started from ${assets.origin}, which is another origin.`,
    )
  }
  return {
    scope: script.scope,
    assets: assets.href.endsWith('/') ? assets.href : `${assets.href}/`,
    catalog: byUrl ? new URL(catalog, document.baseURI).href : catalog ? asData(catalog) : null,
    apiKeys: apiKeys ?? null,
    device,
  }
}

const isKey = (value: unknown) =>
  typeof value === 'string' && /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(value)

/** The same document as plain data: what cannot cross to the worker is no catalog either. */
function asData(catalog: CatalogDocument): CatalogDocument {
  try {
    return structuredClone(catalog)
  } catch {
    throw invalid('catalog', 'The catalog must be a JSON document, or the URL of one.')
  }
}

function invalid(param: string, message: string): InoriginError {
  return new InoriginError('invalid_request', message, { param })
}

/** Takes control of this page; resolves with `undefined` where the browser allows no service worker. */
async function controlOrNone(
  script: Script,
  signal: AbortSignal,
  listeners: Pick<ControlOptions, 'onLost' | 'onRegained'>,
): Promise<PageControl | undefined> {
  const { serviceWorker: container } = navigator
  if (!container || !navigator.locks) return undefined
  try {
    return await takeControl({ container, script, signal, ...listeners })
  } catch (error) {
    if (error instanceof InoriginError && error.code === 'no_service_worker') return undefined
    throw error
  }
}

/** Connects to our own dedicated worker when we host, else through the service worker to the tab that does. */
function connectVia(
  page: HostPage,
  control: PageControl | undefined,
  port: MessagePort,
  attempt: number,
): void | Promise<void> {
  if (page.hosting || !control) return page.connect(port, attempt)
  const message: PageToWorker = { type: 'inorigin:forward', protocol: PROTOCOL, attempt }
  control.registration.active?.postMessage(message, [port])
}

async function holdPageLife(): Promise<string | null> {
  if (!navigator.locks) return null
  const locks = currentLocks()
  if (life?.locks !== locks) life = { locks, name: holdLife(locks, 'page') }
  return life.name
}

interface Parts {
  script: Script
  control: Control
  host: Host
  differences: string[]
  isControlled: () => boolean
  close: () => void
}

function createServer({ script, control, host, differences, isControlled, close }: Parts): Server {
  const scope = new URL(script.scope)
  /** Kept, as an import takes longer than a message even where the module is there. */
  let carry: typeof import('./predictor/transfer.ts').carry | undefined
  // What a tag's predictor takes and gives is known to types alone.
  const predict = (async (tag: Tag, inputs: Record<string, unknown>, options?: PredictOptions) => {
    const given = optionsOf(options)
    carry ??= (await import('./predictor/transfer.ts')).carry
    return carry(inputs, (plain) => control.predict(tagOf(tag), plain, given))
  }) as Server['predict']
  return {
    fetch: async (input, init) => {
      const request = new Request(input, init)
      const url = new URL(request.url)
      const ours = url.origin === scope.origin && url.pathname.startsWith(`${scope.pathname}v1/`)
      if (!ours) return fetch(request)
      const { handle } = await import('./wire/handler.ts')
      return handle(request, host, { base: scope.pathname })
    },
    models: {
      list: () => control.list(),
      async load(tag, options) {
        const { signal, onProgress } = optionsOf(options)
        return control.load(tagOf(tag), signal, onProgress)
      },
      progress: (options) => control.progress(optionsOf(options).signal),
      unload: async (tag) => control.unload(tagOf(tag)),
      remove: async (tag) => control.remove(tagOf(tag)),
    },
    storage: {
      usage: () => control.usage(),
      list: () => control.stored(),
      resources: () => control.storedFiles(),
      pin: async (tag) => control.pin(tagOf(tag), true),
      unpin: async (tag) => control.pin(tagOf(tag), false),
      remove: async (tag) => control.remove(tagOf(tag)),
      clear: () => control.clear(),
      persist: askPersistence,
      async repair(tag, options) {
        const { signal, onProgress } = optionsOf(options)
        return control.repair(tagOf(tag), signal, onProgress)
      },
      async import(tag, files, options) {
        const { signal, onProgress, name, tensors } = optionsOf(options)
        return control.take(tagOf(tag), filesOf(files), { name, tensors }, signal, onProgress)
      },
    },
    predict,
    async predictor(tag) {
      const described = await control.describe(tagOf(tag))
      return { ...described, predict: (inputs, options) => predict(tag, inputs, options) }
    },
    explain: async (tag, options) => control.explain(tagOf(tag), optionsOf(options).signal),
    baseURL: `${scope.href}v1`,
    origin: scope.href.replace(/\/$/, ''),
    get controlled() {
      return isControlled()
    },
    differences,
    close,
  }
}

function differs(names: string[]): string {
  const what = `inorigin: another tab hosts, with other options than this one: ${names.join(', ')}.`
  return `${what} Its options apply here too until it is closed.`
}

function alone(): string {
  const what =
    'inorigin: this page has no service worker, so fetch("/v1/...") would reach the web server.'
  return `${what} Use server.fetch.`
}
