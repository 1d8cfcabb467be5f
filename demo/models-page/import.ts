/** Imports of the visitor's files and of a file at an address, with their progress in words. */
import type { ImportProgress, Server } from '../../src/index.ts'
import { bytes, bytesOf } from '../format.ts'
import type { ChosenFiles } from './dropped.ts'

interface ImportTask {
  signal: AbortSignal
  onProgress(words: string): void
}

/** Stores the files as a model of the visitor's own. Resolves with what was done. */
export async function importFiles(
  server: Server,
  { name, files }: ChosenFiles,
  { signal, onProgress }: ImportTask,
): Promise<string> {
  const { tag, complete, notes } = await server.import(files, {
    signal,
    onProgress: (progress) => onProgress(wordsFor(name, progress)),
  })
  const state = complete ? `${tag} was added.` : `${tag} was added, but files are missing.`
  return [state, ...notes].join(' ')
}

/** Downloads a file and imports it. */
export async function importUrl(server: Server, url: URL, task: ImportTask): Promise<string> {
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
    task.onProgress(`Downloading ${name} · ${bytes(count)}`)
  }
  return importFiles(server, { name, files: [new File(parts, name)] }, task)
}

function wordsFor(name: string, { phase, loadedBytes, totalBytes }: ImportProgress): string {
  const verb = phase === 'check' ? 'Reading' : 'Storing'
  return `${verb} ${name} · ${bytesOf(loadedBytes, totalBytes)}`
}
