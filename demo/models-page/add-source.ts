/** Adds a model of the hub or of an address to the visitor's catalog, after it was checked. */
import type { Server, Tag } from '../../src/index.ts'
import { bytes } from '../format.ts'
import { lookUp } from '../look-up.ts'
import { addOwnEntry, ownEntries, removeOwnEntry } from '../own-catalog.ts'
import { codeOf } from '../trouble.ts'
import { findRepository } from './repository.ts'
import { keyOf, toEntry, type Source } from './source.ts'

/** A model that is listed now, and what to say about it. */
export interface Added {
  tag: Tag
  words: string
  /** `true` if a visitor can chat with it. */
  canChat: boolean
}

interface Task {
  server: Server
  /** Starts the server with the changed catalog. */
  restart(): Promise<void>
  signal: AbortSignal
  say(words: string): void
}

/**
 * Resolves with the model of a source, which the catalog may have had before. Rejects with what stands in
 * the way; nothing is listed then.
 */
export async function addSource(source: Source, task: Task): Promise<Added> {
  const known = await findListed(source, task.server)
  if (known) return known
  if (source.huggingface === undefined) return list(source, '', task)
  const { huggingface, file, revision } = source
  task.say(`Asking the hub for ${huggingface} …`)
  const { name, license, gguf, count } = await findRepository(huggingface, { ...source, ...task })
  const checked: Source = {
    huggingface: name,
    ...(gguf && { file: gguf.path }),
    ...(revision !== undefined && { revision }),
  }
  const others =
    gguf && file === undefined && count > 1
      ? ` ${gguf.path} was chosen of ${count} GGUF files: add ${name}/FILE for another one.`
      : ''
  const words = ` Its license is ${license ?? 'not stated'}.${others}`
  return (await findListed(checked, task.server)) ?? list(checked, words, task)
}

/** Resolves with the entry of the catalog that has this source already, if any. */
async function findListed(source: Source, server: Server): Promise<Added | undefined> {
  const { entries } = await import('../models/hub.json')
  const key = keyOf(source)
  const found = [...ownEntries(), ...(entries as OwnSource[])].find((entry) => keyOf(entry) === key)
  if (!found) return undefined
  const states = await server.models.list()
  const state = states.find(({ tag }) => tag === found.tag)
  if (!state) return undefined
  const words = `${state.name} is in the catalog already, as ${state.tag}.`
  return { tag: state.tag, words, canChat: state.type === 'model' }
}

type OwnSource = Source & { tag: Tag }

/** Lists a source, and looks it up. Lists it no longer if it cannot be loaded. */
async function list(
  source: Source,
  facts: string,
  { server, restart, signal, say }: Task,
): Promise<Added> {
  const states = await server.models.list()
  const entry = toEntry(
    source,
    states.map(({ tag }) => tag),
  )
  const { tag } = entry
  addOwnEntry(entry)
  say(`Adding ${tag} to the catalog …`)
  await restart()
  try {
    const { state } = await lookUp(server, tag, signal)
    const size = state.bytes ? `: ${bytes(state.bytes)} to download.` : '.'
    return { tag, words: `${tag} was added${size}${facts}`, canChat: state.type === 'model' }
  } catch (error) {
    if (codeOf(error) === 'model_not_found') throw new Error(unlisted(tag), { cause: error })
    if (!signal.aborted) {
      removeOwnEntry(tag)
      await restart()
    }
    throw error
  }
}

/** Returns why the server does not list an entry of the visitor. */
function unlisted(tag: Tag): string {
  const isNamed = new URLSearchParams(location.search).has('catalog')
  return isNamed
    ? `${tag} is in your catalog. Open this page without "catalog" in its address to use it.`
    : `${tag} is in your catalog. Close the other tabs of this page and reload it to use it.`
}
