/**
 * Answers requests for the library's own files. The web server answers while it can, so that
 * nothing is stale; kept files answer if it does not, or if it has another version by now.
 */
import type { ListedFile } from '../src/types/index.ts'
import {
  LIST_NAME,
  type Mark,
  openAssetCache,
  parseVersion,
  putFile,
  readMark,
  setMark,
  toAssetKey,
  typeOf,
  type Version,
} from '../src/values/asset-cache.ts'
import { computeDigest } from '../src/values/text.ts'
import { hasContent, isPage, unlessSlow } from './keep-app.ts'

/** Script of the host. Its start decides which version the host and its models run. */
const HOST_SCRIPT = 'worker.js'
/** Module of pages without a bundler. It is requested before there is a host. */
const PAGE_SCRIPT = 'index.js'

/** Milliseconds for which a server that timed out is not waited for, unless it answers by then. */
const SERVER_PAUSE_MS = 30_000

/** The answers for the folder that `inorigin init` created. `folder` is its URL, with a slash. */
export class Assets {
  readonly #folder: string
  readonly #kept: ReturnType<typeof createKeptFiles>
  /** Version of the running host, if that has a list; `undefined` until it was read. */
  #current: Promise<Version | null | undefined> | undefined
  /** Time in milliseconds since 1970 until which the web server is not waited for. */
  #pausedUntil = 0

  constructor(database: string, folder: string) {
    this.#folder = folder
    this.#kept = createKeptFiles(database, folder)
  }

  /** Returns the answer, or `null` for a request that is not for one of these files. */
  respond(event: FetchEvent): Promise<Response> | null {
    const name = findName(event.request, this.#folder)
    if (name === null) return null
    const isStart = name === HOST_SCRIPT && event.request.destination === 'worker'
    const answer = isStart ? this.#startHost(event) : this.#answer(event, name)
    return answer.then((response) => withType(response, name))
  }

  /** Answers the request for the host's script, and sets the version that the host runs. */
  async #startHost(event: FetchEvent): Promise<Response> {
    const fetching = this.#fetchStart(event.request)
    // A server that is slow is heard all the same, so that the next start has its version.
    event.waitUntil(fetching.catch(() => undefined))
    const start = await this.#inTime(fetching)
    const complete = await this.#kept.readMark('complete')
    // A script that is not in the list of the same version was changed by hand, or by a proxy.
    const isFresh =
      start && (!start.version || start.isListed || start.version.text === complete?.text)
    const copy = isFresh ? undefined : await this.#kept.find(complete?.files.get(HOST_SCRIPT))
    const { version, response } = copy ? { version: complete, response: copy } : await fetching
    await this.#setCurrent(version ?? null)
    return response
  }

  /** Fetches the host's script and its version. `isListed` says whether they belong together. */
  async #fetchStart(request: Request) {
    const [{ version, isUsable }, fetched] = await Promise.all([
      fetchVersion(this.#folder),
      fetchFile(request, undefined, 'no-cache'),
    ])
    const file = version?.files.get(HOST_SCRIPT)
    const bytes = file ? await readListed(fetched.response.clone(), file) : null
    const start = { ...fetched, version, isListed: bytes !== null }
    if (!isUsable || !fetched.isUsable) return { ...start, isUsable: false }
    if (file && bytes) await this.#kept.put(file, bytes, fetched.response.headers)
    await this.#kept.setMark('latest', version)
    return start
  }

  /** Answers the request for any other file. */
  async #answer(event: FetchEvent, name: string): Promise<Response> {
    const kept = this.#kept
    // A page may be newer than the host that another tab runs, but not older than the server.
    const file = name === PAGE_SCRIPT ? undefined : (await this.#readCurrent())?.files.get(name)
    const isChunk = name.startsWith('chunks/')
    const isRuntime = name.endsWith('.wasm')
    // Names of chunks have a digest, and a runtime is only checked in time if it is read from here.
    const isFixed = isChunk || isRuntime
    // If the copy does not compile, the model worker requests the file in the mode `reload`.
    const isUnchecked = isRuntime && event.request.cache === 'no-cache'
    const first = isFixed && (await kept.find(file, isUnchecked))
    if (first) return first
    const fetching = fetchFile(event.request, file, isChunk ? 'default' : 'no-cache')
    const checking = fetching.then(async (fetched) => {
      if (!isFixed) await fetched.bytes
      return fetched
    })
    const fetched = await this.#inTime(checking)
    if (fetched) {
      const { response, bytes } = fetched
      if (!file) return response
      const { headers } = response
      const keeping = bytes.then((listed) => listed && kept.put(file, listed, headers))
      event.waitUntil(keeping)
      if (isRuntime) {
        // The browser keeps compiled code with the response that it compiled. Later visits get it.
        await keeping
        const copy = await kept.find(file, true)
        if (copy) return copy
      }
      if (isFixed || (await bytes)) return response
      // The server has another version by now, or the file was changed by hand.
      const now = await this.#inTime(fetchVersion(this.#folder))
      if (now?.version?.text === (await this.#readCurrent())?.text) return response
    }
    const listed = file ?? (await kept.readMark('complete'))?.files.get(name)
    return (await kept.find(listed)) ?? (await fetching).response
  }

  #readCurrent(): Promise<Version | null | undefined> {
    return (this.#current ??= this.#kept.readMark('current'))
  }

  /** Persists the version before its host starts, because this thread may end before the host. */
  async #setCurrent(version: Version | null): Promise<void> {
    if ((await this.#readCurrent())?.text === version?.text) return
    this.#current = Promise.resolve(version)
    await this.#kept.setMark('current', version)
  }

  /** Resolves with what the server sent; `undefined` if it failed or took too long. */
  async #inTime<T extends { isUsable: boolean }>(work: Promise<T>) {
    const settled = work.then(
      (found) => {
        this.#pausedUntil = 0
        return found.isUsable ? found : undefined
      },
      () => undefined,
    )
    if (Date.now() < this.#pausedUntil) return undefined
    const found = await unlessSlow(settled, 'slow')
    if (found !== 'slow') return found
    this.#pausedUntil = Date.now() + SERVER_PAUSE_MS
  }
}

/**
 * Returns the name of a file that may be kept, or `null`. Files of models have a store of their own.
 * A request that names the digest of its file is the host's, which keeps the file itself.
 */
function findName({ method, mode, integrity, url }: Request, folder: string): string | null {
  if (method !== 'GET' || mode === 'navigate' || integrity || !url.startsWith(folder)) return null
  const name = url.slice(folder.length)
  return /^models\/catalog\.json$|^(?!models\/)[^?]+\.(m?js|wasm|json)$/.test(name) ? name : null
}

/**
 * Fetches a file. The bytes are `null` unless they are those of the list. The response is not usable
 * if the server failed: proxies and captive portals answer in place of one, or send nothing.
 */
async function fetchFile(request: Request, file: ListedFile | undefined, cache: RequestCache) {
  const response = await fetch(request, { cache })
  const bytes = file ? readListed(response.clone(), file).catch(() => null) : Promise.resolve(null)
  const isUsable = response.ok && !isPage(response) && (await hasContent(response))
  return { response, bytes, isUsable }
}

/** Returns the response with a type that browsers run: nginx of Debian 12 sends none for `.mjs`. */
function withType(response: Response, name: string): Response {
  const { status, body } = response
  const headers = new Headers(response.headers)
  const isKnown = /html|javascript|json|wasm/.test(headers.get('content-type') ?? '')
  if (!response.ok || isKnown) return response
  headers.set('content-type', typeOf(name))
  return new Response(body, { status, headers })
}

/** Fetches the version on the server; `null` if it has no list. */
async function fetchVersion(folder: string) {
  const response = await fetch(folder + LIST_NAME, { cache: 'no-cache' })
  const version = response.ok ? parseVersion(await response.text()) : null
  return { version, isUsable: response.status < 500 }
}

/** Resolves with the bytes of the response, or with `null` if they are not those of the list. */
async function readListed(response: Response, { sha256 }: ListedFile): Promise<ArrayBuffer | null> {
  if (!response.ok) return null
  const bytes = await response.arrayBuffer()
  return (await computeDigest('SHA-256', bytes)) === sha256 ? bytes : null
}

/**
 * Returns the kept files of one folder. The key of a file has its SHA-256, so versions cannot mix,
 * and a file that two versions share is kept once. All methods resolve with `undefined` if the
 * browser lets a site store nothing, or if the storage is full.
 */
function createKeptFiles(database: string, folder: string) {
  // The page or the host may delete the cache at any time, so it is opened anew for each use.
  const use = <T>(work: (cache: Cache) => Promise<T>): Promise<T | undefined> =>
    openAssetCache(database)
      .then(work)
      .catch(() => undefined)

  return {
    /** Resolves with the file. One whose bytes are not those of the list is deleted, if it is read. */
    find: (file: ListedFile | undefined, isUnchecked = false) =>
      use(async (cache) => {
        if (!file) return undefined
        const key = toAssetKey(folder + file.name, file.sha256)
        const copy = await cache.match(key)
        if (!copy || isUnchecked) return copy
        // A second response, untouched: with one of the cache itself, the browser keeps compiled code.
        if (await readListed(copy, file).catch(() => null)) return cache.match(key)
        await cache.delete(key)
      }),
    put: (file: ListedFile, bytes: ArrayBuffer, headers: Headers) =>
      use((cache) => putFile(cache, folder, file, bytes, headers)),
    readMark: (mark: Mark) => use((cache) => readMark(cache, folder, mark)),
    /** Marks the version; `null` removes the mark. */
    setMark: (mark: Mark, version: Version | null) =>
      use((cache) => setMark(cache, folder, mark, version)),
  }
}
