/** Worker that measures how fast one thread multiplies weights: it runs for the time that it is sent. */
import { createKernel, ROW_BYTES, WEIGHT_BYTES } from './kernel.ts'

async function measure(milliseconds: number): Promise<number> {
  const { memory, dot } = await createKernel()
  new Uint8Array(memory.buffer).fill(3)
  const rates: number[] = []
  const start = performance.now()
  for (let now = start; now - start < milliseconds;) {
    for (let row = 0; row < WEIGHT_BYTES; row += ROW_BYTES) dot(row, WEIGHT_BYTES, ROW_BYTES)
    const end = performance.now()
    rates.push(WEIGHT_BYTES / (end - now))
    now = end
  }
  // The first runs are those of code that is not optimized yet, and other work only slows a run.
  const settled = rates.slice(Math.floor(rates.length / 2)).toSorted((one, other) => one - other)
  return 1_000 * (settled[Math.floor(0.9 * settled.length)] ?? 0)
}

self.addEventListener('message', ({ data }: MessageEvent<number>) => {
  // An error of a promise would not reach the page.
  measure(data).then(
    (bytesPerSecond) => self.postMessage(bytesPerSecond),
    () => self.postMessage(null),
  )
})
