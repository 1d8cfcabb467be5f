/**
 * Answers requests for the library's own files. The web server answers while it can, so that
 * nothing is stale; kept files answer if it does not, or if it has another version by now.
 */
import {
  createKeptFiles,
  LIST_NAME,
  parseVersion,
  readListed,
  type KeptFiles,
  type Version,
} from './kept-files.ts'

/** Script of the host. Its start decides which version the host and its models run. */
const HOST_SCRIPT = 'worker.js'
/** Module of pages without a bundler. It is requested before there is a host. */
const PAGE_SCRIPT = 'index.js'

/** Timeout in milliseconds for the web server, if there is a kept file that can answer instead. */
const SERVER_TIMEOUT_MS = 3_000
/** Milliseconds for which a server that failed is not waited for, where a kept file can answer. */
const SERVER_PAUSE_MS = 30_000

interface State {
  /** URL of the folder, with a trailing slash. */
  readonly folder: string
  readonly kept: KeptFiles
  /** Version of the running host, if that has a list; `undefined` until it was read. */
  current: Promise<Version | null | undefined> | undefined
  /** Time in milliseconds since 1970 until which the web server is not waited for. */
  pausedUntil: number
}

/** Answers to requests for the library's own files. */
export interface Assets {
  /** Returns the answer, or `null` for a request that is not for one of these files. */
  respond(event: FetchEvent): Promise<Response> | null
}

/** Creates the answers for the folder that `inorigin init` created. */
export function createAssets(scope: string, folder: string): Assets {
  const kept = createKeptFiles(scope, folder)
  const state: State = { folder, kept, current: undefined, pausedUntil: 0 }
  return {
    respond(event) {
      const name = findName(event.request, folder)
      if (name === null) return null
      return name === HOST_SCRIPT ? startHost(state, event) : answer(state, event, name)
    },
  }
}

/**
 * Returns the name of a file that may be kept, or `null`. Files of models have a store of their own.
 */
function findName({ method, url }: Request, folder: string): string | null {
  const name = method === 'GET' && url.startsWith(folder) ? url.slice(folder.length) : ''
  return /^models\/catalog\.json$|^(?!models\/)[^?]+\.(m?js|wasm|json)$/.test(name) ? name : null
}

/** Answers the request for the host's script, and sets the version that the host runs. */
async function startHost(state: State, event: FetchEvent): Promise<Response> {
  const { kept } = state
  const complete = await kept.readMark('complete')
  const whole = fetchStart(state, event.request.url)
  const start = await inTime(state, whole)
  const isUsable = start && (!start.version || start.isListed)
  // A script that is not in the list of the same version was changed by hand, or by a proxy.
  const copied = !isUsable && start?.version?.text !== complete?.text ? complete : null
  const script = copied?.files.get(HOST_SCRIPT)
  const copy = script && (await kept.find(script))
  if (copy && copied) {
    await setCurrent(state, copied)
    return copy
  }
  const { version = null, response } = start ?? (await whole)
  await setCurrent(state, version)
  if (version) event.waitUntil(fill(state, version))
  return response
}

interface Start {
  /** Version on the server; `null` if it has no list; `undefined` if that is unknown. */
  version: Version | null | undefined
  response: Response
  /** `true` if the script is the one of the version. */
  isListed: boolean
  /** HTTP status, as of a response. */
  status: number
}

/** Fetches the host's script and the list, both revalidated by the server. */
async function fetchStart({ folder }: State, url: string): Promise<Start> {
  const [version, response] = await Promise.all([
    fetchVersion(folder),
    fetch(url, { cache: 'no-cache' }),
  ])
  const file = version?.files.get(HOST_SCRIPT)
  return {
    version,
    response,
    isListed: file !== undefined && (await readListed(response.clone(), file)) !== null,
    status: version === undefined ? 503 : response.status,
  }
}

/** Resolves with the version on the server; `null` if it has none, `undefined` if it is down. */
async function fetchVersion(folder: string): Promise<Version | null | undefined> {
  const response = await fetch(folder + LIST_NAME, { cache: 'no-cache' }).catch(() => undefined)
  if (!response || response.status >= 500) return undefined
  return response.ok ? parseVersion(await response.text()) : null
}

/** Answers the request for any other file. */
async function answer(state: State, event: FetchEvent, name: string): Promise<Response> {
  const { kept } = state
  // A page may be newer than the host that another tab runs, but not older than the server.
  const file = name === PAGE_SCRIPT ? undefined : (await currentOf(state))?.files.get(name)
  // Names of chunks have a digest, and a runtime is only checked in time if it is read from here.
  const isFixed = /^chunks\/|\.wasm$/.test(name)
  const first = isFixed && file && (await kept.find(file))
  if (first) return first
  const fetched = fetch(event.request, isFixed ? {} : { cache: 'no-cache' })
  const response = await inTime(state, fetched)
  if (!response) {
    const listed = file ?? (await kept.readMark('complete'))?.files.get(name)
    return (listed && (await kept.find(listed))) ?? fetched
  }
  if (!file) return response
  const checking = readListed(response.clone(), file)
  const keeping = checking.then((bytes) => bytes && kept.put(file, bytes, response.headers))
  event.waitUntil(keeping)
  if (isFixed || (await checking)) return response
  // The server has another version by now, or the file was changed by hand.
  const version = await fetchVersion(state.folder)
  const isReplaced = version?.text !== (await currentOf(state))?.text
  return (isReplaced && (await kept.find(file))) || response
}

/** Keeps the rest of the version. Stops at the first file that cannot be had or does not fit. */
async function fill(state: State, version: Version): Promise<void> {
  const { folder, kept } = state
  for (const file of (await kept.listMissing(version)) ?? []) {
    const response = await fetch(folder + file.name, { cache: 'no-cache' })
    const bytes = await readListed(response, file)
    if (!bytes || !(await kept.put(file, bytes, response.headers))) return
  }
  if ((await currentOf(state))?.text === version.text) await kept.complete(version)
}

function currentOf(state: State): Promise<Version | null | undefined> {
  return (state.current ??= state.kept.readMark('current'))
}

/** Persists the version before its host starts, because this thread may end before the host. */
async function setCurrent(state: State, version: Version | null): Promise<void> {
  if ((await currentOf(state))?.text === version?.text) return
  state.current = Promise.resolve(version)
  await state.kept.setMark('current', version)
}

/**
 * Resolves with what the server sent; `undefined` if it failed or took too long. A proxy whose server
 * is down answers with a status from 500 on.
 */
async function inTime<T extends { status: number }>(
  state: State,
  work: Promise<T>,
): Promise<T | undefined> {
  const settled = work.then(
    (found) => (found.status < 500 ? found : undefined),
    () => undefined,
  )
  if (Date.now() < state.pausedUntil) return undefined
  const timeout = new Promise<undefined>((resolve) => setTimeout(resolve, SERVER_TIMEOUT_MS))
  const found = await Promise.race([settled, timeout])
  if (!found) state.pausedUntil = Date.now() + SERVER_PAUSE_MS
  return found
}
