/** What the bench runs inside the page: a stream of frames, with a session or without one. */
import type { Catalog, serve } from '../../src/index.ts'

/** One stream. Times are in milliseconds. */
export interface Streamed {
  /** Frames that the browser showed. */
  shown: number
  /** Frames that were answered. */
  answered: number
  /** Frames that came while two others were waiting for their answer, and were left out. */
  dropped: number
  /** Longest time between two turns of the main thread, less the interval of its timer. */
  longest: number
  elapsed: number
}

export interface SessionBench {
  /** Draws a frame at each turn of the display, and predicts it if `isPredicted`. */
  stream(milliseconds: number, isPredicted: boolean): Promise<Streamed>
}

/** Length of a frame's sides in pixels. */
const SIDE = 224
/** Milliseconds between two turns of the timer that watches the main thread. */
const WATCH_INTERVAL = 4
/** Frames that may wait for their answer. */
const MAX_WAITING = 2

export async function openSessionBench(
  start: typeof serve,
  catalog: Catalog,
): Promise<SessionBench> {
  const server = await start({ device: 'wasm', catalog })
  const session = await server.session('@bench/smooth')
  const canvas = document.createElement('canvas')
  canvas.width = canvas.height = SIDE
  const drawing = canvas.getContext('2d')
  if (!drawing) throw new Error('The page cannot draw.')

  const predictFrame = async (timestamp: number): Promise<void> => {
    const frame = new VideoFrame(canvas, { timestamp })
    try {
      await session.predict({ picture: frame })
    } finally {
      frame.close()
    }
  }
  await predictFrame(0)

  return {
    async stream(milliseconds, isPredicted) {
      const seen: Streamed = { shown: 0, answered: 0, dropped: 0, longest: 0, elapsed: 0 }
      const stopWatching = watch((gap) => (seen.longest = Math.max(seen.longest, gap)))
      const begin = performance.now()
      const waiting = new Set<Promise<void>>()
      while (performance.now() - begin < milliseconds) {
        const now = await new Promise<number>((resolve) => requestAnimationFrame(resolve))
        seen.shown += 1
        drawing.fillStyle = `hsl(${Math.round(now / 10) % 360} 80% 50%)`
        drawing.fillRect(0, 0, SIDE, SIDE)
        if (!isPredicted) continue
        if (waiting.size >= MAX_WAITING) {
          seen.dropped += 1
          continue
        }
        const running = predictFrame(now * 1000).then(() => {
          seen.answered += 1
          waiting.delete(running)
        })
        waiting.add(running)
      }
      await Promise.all(waiting)
      seen.elapsed = performance.now() - begin
      stopWatching()
      return seen
    },
  }
}

/** Calls back with the time that each turn of a timer came too late. Returns the function that ends it. */
function watch(onGap: (milliseconds: number) => void): () => void {
  let last = performance.now()
  const timer = setInterval(() => {
    const now = performance.now()
    onGap(now - last - WATCH_INTERVAL)
    last = now
  }, WATCH_INTERVAL)
  return () => clearInterval(timer)
}
