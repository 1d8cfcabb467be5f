/** Imports of the visitor's files and of a file at an address, with their progress in words. */
import type { ImportProgress, Server } from '../../src/index.ts'
import { bytes, bytesOf } from '../format.ts'
import type { Added } from './add-source.ts'
import type { ChosenFiles } from './dropped.ts'

interface ImportTask {
  signal: AbortSignal
  say(words: string): void
}

/** Stores the files as a model of the visitor's own. Resolves with it. */
export async function importFiles(
  server: Server,
  { name, files }: ChosenFiles,
  { signal, say }: ImportTask,
): Promise<Added> {
  const { tag, complete, notes } = await server.import(files, {
    signal,
    onProgress: (progress) => say(wordsFor(name, progress)),
  })
  const state = complete ? `${tag} was added.` : `${tag} was added, but files are missing.`
  const states = await server.models.list()
  const canChat = states.some((one) => one.tag === tag && one.type === 'model') && complete
  return { tag, words: [state, ...notes].join(' '), canChat }
}

/** Downloads a file and imports it. */
export async function importUrl(server: Server, url: URL, task: ImportTask): Promise<Added> {
  const name = url.pathname.split('/').pop() || 'model.onnx'
  const response = await fetch(url, { signal: task.signal })
  if (!response.ok || !response.body) {
    throw new Error(`${url.host} answered with ${response.status}. Check the address.`)
  }
  const parts: Uint8Array<ArrayBuffer>[] = []
  let count = 0
  const reader = response.body.getReader()
  for (let part = await reader.read(); part.value; part = await reader.read()) {
    parts.push(part.value)
    count += part.value.length
    task.say(`Downloading ${name} · ${bytes(count)}`)
  }
  return importFiles(server, { name, files: [new File(parts, name)] }, task)
}

function wordsFor(name: string, { phase, loadedBytes, totalBytes }: ImportProgress): string {
  const verb = phase === 'check' ? 'Reading' : 'Storing'
  return `${verb} ${name} · ${bytesOf(loadedBytes, totalBytes)}`
}
