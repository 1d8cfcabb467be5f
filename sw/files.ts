/** Files that the service worker answers: pages that it isolates, and the library's own. */
import { ASSETS_PARAM, ISOLATE_PARAM, names, OFFLINE_PARAM } from '../src/link/protocol.ts'
import { parseFlag } from '../src/validate-arguments.ts'
import { removeAssets } from '../src/values/asset-cache.ts'
import { Assets } from './assets.ts'
import { fetchOrFind } from './keep-app.ts'

declare const self: ServiceWorkerGlobalScope

/** Opens the files. An app that turned keeping off loses those that were kept before. */
export function openFiles({ isolate, offline }: { isolate?: boolean; offline?: boolean }) {
  const { database } = names(self.registration.scope)
  const params = new URL(self.location.href).searchParams
  const isIsolating = parseFlag('isolate', isolate, params.get(ISOLATE_PARAM) === 'true')
  const policy = isIsolating ? chooseIsolationPolicy(navigator) : null
  const folder = new URL(params.get(ASSETS_PARAM) ?? 'inorigin/', self.location.href)
  const isKeeping = parseFlag('offline', offline, params.get(OFFLINE_PARAM) !== 'false')
  const assets = isKeeping ? new Assets(database, folder.href) : null
  self.addEventListener('activate', (event) => {
    if (!assets) event.waitUntil(removeAssets(database))
  })
  return {
    /** `true` if pages are isolated, and this browser is known to honor that. */
    isolates: policy !== null,
    /** Returns the answer to a request for a page, or for a file of the library; `null` for others. */
    respond(event: FetchEvent): Promise<Response> | null {
      const headers = policy && headersFor(event.request, policy)
      const asset = assets?.respond(event) ?? null
      if (!headers) return asset
      return (asset ?? fetchOrFind(event)).then((response) => withHeaders(response, headers))
    },
  }
}

// Cross-origin isolation for pages whose web server sends no headers for it. Isolated pages have
// shared memory, without which WASM runs on one thread.

type HeaderFields = Readonly<Record<string, string>>

/** Headers that isolate the pages of one browser. */
interface IsolationPolicy {
  /** Headers of documents. */
  document: HeaderFields
  /** Headers of the scripts of dedicated workers; `null` if the script needs none. */
  worker: HeaderFields | null
}

/** Properties of `navigator` that tell the browser; `userAgentData` exists in Chromium only. */
export interface BrowserIdentity {
  userAgent: string
  userAgentData?: {
    brands: readonly { brand: string; version: string }[]
    platform: string
  }
}

const EMBEDDER_POLICY = 'cross-origin-embedder-policy'
const DOCUMENT_POLICY = 'document-isolation-policy'

/**
 * First major versions that know the document policy. Chromium's WebView does not know it.
 * https://github.com/mdn/browser-compat-data/blob/main/http/headers/Document-Isolation-Policy.json
 */
const MIN_CHROMIUM = 137
const MIN_CHROMIUM_ANDROID = 146
/**
 * First major version that knows `credentialless`. Firefox for Android does not know it.
 * https://github.com/mdn/browser-compat-data/blob/main/http/headers/Cross-Origin-Embedder-Policy.json
 */
const MIN_FIREFOX = 119

/**
 * Chooses the policy by the version of the browser, because a page cannot detect a policy before a
 * document was sent with it. Returns `null` for a browser that is not known to honor one.
 */
export function chooseIsolationPolicy(browser: BrowserIdentity): IsolationPolicy | null {
  const { userAgent, userAgentData } = browser
  if (userAgentData) return chooseForChromium(userAgentData)
  // All browsers of iOS are WebKit, whatever their name. A Chromium without brands is too old.
  const isWebKit = userAgent.includes('AppleWebKit/') && !userAgent.includes('Chrome/')
  if (isWebKit) return withEmbedderPolicy('require-corp')
  const [, firefox] = /\bFirefox\/(\d+)/.exec(userAgent) ?? []
  if (firefox === undefined || userAgent.includes('Android')) return null
  return Number(firefox) >= MIN_FIREFOX ? withEmbedderPolicy('credentialless') : null
}

function chooseForChromium({
  brands,
  platform,
}: NonNullable<BrowserIdentity['userAgentData']>): IsolationPolicy | null {
  const chromium = brands.find(({ brand }) => brand === 'Chromium')
  const isWebView = brands.some(({ brand }) => brand === 'Android WebView')
  if (!chromium || isWebView) return null
  const least = platform === 'Android' ? MIN_CHROMIUM_ANDROID : MIN_CHROMIUM
  if (Number(chromium.version) < least) return null
  return { document: { [DOCUMENT_POLICY]: 'isolate-and-credentialless' }, worker: null }
}

/** Workers of a document with an embedder policy start only if their script has it, too. */
function withEmbedderPolicy(value: 'credentialless' | 'require-corp'): IsolationPolicy {
  const worker = { [EMBEDDER_POLICY]: value }
  return { document: { 'cross-origin-opener-policy': 'same-origin', ...worker }, worker }
}

/** Returns the headers to add to the response to a request; `null` if it needs none. */
export function headersFor(
  { mode, destination }: Pick<Request, 'mode' | 'destination'>,
  policy: IsolationPolicy,
): HeaderFields | null {
  if (mode === 'navigate') return policy.document
  return destination === 'worker' ? policy.worker : null
}

/**
 * Returns the response with these headers, and streams its body. A header that the web server sent
 * stays. Only pages and scripts are changed, and none that has a policy of the web server.
 */
export function withHeaders(response: Response, added: HeaderFields): Response {
  const { status, statusText, body } = response
  const headers = new Headers(response.headers)
  // This leaves out downloads, and redirects that the browser follows by itself.
  const isCode = /^[^;]*(html|javascript)/.test(headers.get('content-type') ?? '')
  const hasPolicy = headers.has(EMBEDDER_POLICY) || headers.has(DOCUMENT_POLICY)
  if (!isCode || hasPolicy) return response
  for (const [name, value] of Object.entries(added)) {
    if (!headers.has(name)) headers.set(name, value)
  }
  return new Response(body, { status, statusText, headers })
}
