import { serve } from 'inorigin'
import { useEffect, useState } from 'react'

/** One server for the page, whatever components come and go. */
const serving = serve()

/** Loads a model and follows its progress: `{ server, progress, error }`. */
export function useModel(tag) {
  const [state, setState] = useState({ progress: 0 })
  useEffect(() => {
    const leaving = new AbortController()
    const { signal } = leaving
    const update = (next) => !signal.aborted && setState(next)
    async function load() {
      const server = await serving
      await server.models.load(tag, {
        signal,
        onProgress: ({ loadedBytes, totalBytes }) =>
          update({ progress: totalBytes > 0 ? loadedBytes / totalBytes : 0 }),
      })
      update({ progress: 1, server })
    }
    load().catch((error) => update({ progress: 0, error }))
    return () => leaving.abort()
  }, [tag])
  return state
}
