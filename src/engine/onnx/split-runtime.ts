/** Loads the one build of the runtime that is stored in parts. */
import { RUNTIME_PARTS } from '../../values/runtime-files.ts'

/** Resolves with the joined bytes. Rejects with the reason if a part cannot be loaded. */
export async function fetchSplitRuntime(folder: string): Promise<ArrayBuffer> {
  const parts = await Promise.all(
    RUNTIME_PARTS.map(async (name) => {
      const response = await fetch(folder + name)
      if (!response.ok) throw new Error(`${response.url} has the status ${response.status}.`)
      return response.blob()
    }),
  )
  return new Blob(parts).arrayBuffer()
}
