/** Facts about a model before its download: its size, its fit and the space for it. */
import type { Explanation, ModelState, Server, StorageUsage, Tag } from '../src/index.ts'
import { listModels, type ListedModel } from './listing.ts'

export interface ModelFacts {
  state: ModelState
  /** Part of `GET /v1/models`; absent for a predictor. */
  listed?: ListedModel | undefined
  explanation: Explanation
  usage: StorageUsage
}

/** Error of `/v1`, with the code of its body. */
class RequestError extends Error {
  readonly code: string | undefined

  constructor(message: string, code: string | undefined) {
    super(message)
    this.code = code
  }
}

/**
 * Resolves with the facts of a model. If its hub was not asked yet, `POST /v1/predictions` asks it
 * for the list of files, which takes some kilobytes and downloads no weights.
 */
export async function lookUp(server: Server, tag: Tag, signal?: AbortSignal): Promise<ModelFacts> {
  let state = await stateOf(server, tag)
  if (state.bytes === null) {
    await askHub(server, tag, signal)
    state = await stateOf(server, tag)
  }
  const [explanation, usage, models] = await Promise.all([
    server.explain(tag, { signal }),
    server.storage.usage(),
    listModels(server),
  ])
  return { state, listed: models.find(({ id }) => id === tag), explanation, usage }
}

/** Returns the bytes that this origin may still store; `null` if the browser does not tell. */
export function freeBytes({ quotaBytes, originBytes }: StorageUsage): number | null {
  return quotaBytes === null || originBytes === null ? null : Math.max(0, quotaBytes - originBytes)
}

async function stateOf(server: Server, tag: Tag): Promise<ModelState> {
  const states = await server.models.list()
  const state = states.find((one) => one.tag === tag)
  if (!state) throw new RequestError(`${tag} is not in the catalog.`, 'model_not_found')
  return state
}

async function askHub(server: Server, tag: Tag, signal: AbortSignal | undefined): Promise<void> {
  const ask = server.controlled ? fetch : server.fetch
  const response = await ask(`${server.baseURL}/predictions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ tag, clientId: 'playground' }),
    signal,
  })
  if (response.ok) return
  const { error } = (await response.json()) as { error?: { message?: string; code?: string } }
  throw new RequestError(error?.message ?? `The look-up failed: ${response.status}.`, error?.code)
}
