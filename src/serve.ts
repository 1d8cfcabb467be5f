/** Page side: makes this page's origin answer `/v1`. */
import type { CatalogDocument } from './catalog/schema.ts'
import { InoriginError } from './error.ts'
import { filesOf, optionsOf, tagOf } from './given.ts'
import { digestOptions } from './host/digest.ts'
import { hostPage, type HostPage } from './host/page.ts'
import type { Link } from './link/ask.ts'
import { holdLife } from './link/life.ts'
import { PROTOCOL, type HostSetup, type PageToWorker } from './link/protocol.ts'
import { remoteControl, remoteHost } from './link/remote.ts'
import { register, speaksOurs, tell, type Script } from './register.ts'
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
  /** The keys that are accepted, in either style. Default: any key, or none. */
  apiKeys?: readonly string[]
  /** Where models run. Default: `auto`, the best implementation for this device. */
  device?: Device | 'auto'
  /** Aborting it gives up starting, and later closes the server. */
  signal?: AbortSignal
}

/** Looks for a host: one that is starting, or the next tab in line after one was closed. */
const HOST_ATTEMPTS = 3
const HOST_PATIENCE = 8_000

/** Of this page, however many servers it opens; freed by the browser with the page. */
let life: Promise<string> | undefined

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

  const registration = await registerOrNone(script, closing.signal)
  closing.signal.throwIfAborted()
  const container = registration && navigator.serviceWorker
  const toWorker = (message: PageToWorker) => registration && tell(registration, message)
  const page = hostPage(setup, container, toWorker)
  closing.signal.addEventListener('abort', () => page.close())
  try {
    const link: Link = {
      connect: connectVia(page, registration),
      life: await holdPageLife(),
      client: crypto.randomUUID(),
      attempts: HOST_ATTEMPTS,
      patience: HOST_PATIENCE,
    }
    const control = remoteControl(link)
    const differences = await control.compare(await digestOptions(setup), closing.signal)
    if (differences.length > 0) console.warn(differs(differences))
    if (!registration) console.warn(alone())
    return createServer({
      script, control, host: remoteHost(link), differences,
      controlled: registration !== undefined,
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
    const what = 'apiKeys must be an array of strings that a header can carry: ASCII, no outer spaces.'
    throw invalid('apiKeys', `${what} Leave it out to accept any key.`)
  }
  if (!['auto', 'webgpu', 'wasm'].includes(device)) {
    throw invalid('device', `device must be auto, webgpu or wasm, not ${String(device)}.`)
  }
  const byUrl = typeof catalog === 'string' || catalog instanceof URL
  const assets = new URL(options.assets ?? 'inorigin/', options.assets ? document.baseURI : script.url)
  if (assets.origin !== location.origin) {
    throw invalid('assets', `Workers cannot be started from ${assets.origin}, which is another origin.`)
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

/** The registration, or nothing where this browser has or allows no service worker. */
async function registerOrNone(
  script: Script,
  signal: AbortSignal,
): Promise<ServiceWorkerRegistration | undefined> {
  const { serviceWorker } = navigator
  if (!serviceWorker || !navigator.locks) return undefined
  try {
    const registration = await register(serviceWorker, script, signal)
    // A script of another protocol serves its own tabs until nothing streams and it can be replaced.
    return (await speaksOurs(serviceWorker, registration, signal)) ? registration : undefined
  } catch (error) {
    if (error instanceof InoriginError && error.code === 'no_service_worker') return undefined
    throw error
  }
}

/** To our own dedicated worker when we host, else through the service worker to the tab that does. */
function connectVia(
  page: HostPage,
  registration: ServiceWorkerRegistration | undefined,
): Link['connect'] {
  return (port, attempt) => {
    if (page.hosting || !registration) return page.connect(port, attempt)
    const message: PageToWorker = { type: 'inorigin:forward', protocol: PROTOCOL, attempt }
    registration.active?.postMessage(message, [port])
  }
}

async function holdPageLife(): Promise<string | null> {
  if (!navigator.locks) return null
  life ??= holdLife(navigator.locks, 'page')
  return life
}

interface Parts {
  script: Script
  control: Control
  host: Host
  differences: string[]
  controlled: boolean
  close: () => void
}

function createServer({ script, control, host, differences, controlled, close }: Parts): Server {
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
    controlled,
    differences,
    close,
  }
}

function differs(names: string[]): string {
  const what = `inorigin: another tab hosts, with other options than this one: ${names.join(', ')}.`
  return `${what} Its options apply here too until it is closed.`
}

function alone(): string {
  const what = 'inorigin: this page has no service worker, so fetch("/v1/...") would reach the web server.'
  return `${what} Use server.fetch.`
}
