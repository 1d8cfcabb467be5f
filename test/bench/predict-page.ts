/** What the bench runs inside the page: the same graph through `predict()` and by itself. */
import type { Catalog, serve } from '../../src/index.ts'

export interface PredictBench {
  /** Milliseconds of one prediction, from the page and back. */
  predict(): Promise<number>
  /** Milliseconds of one run of the session, where it is. */
  run(): Promise<number>
}

export async function openPredictBench(
  start: typeof serve,
  catalog: Catalog,
): Promise<PredictBench> {
  const server = await start({ device: 'wasm', catalog })
  const worker = new Worker('/bench/predict-worker.js', { type: 'module' })
  const tell = (order: 'open' | 'run') =>
    new Promise<number>((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data as number)
      worker.onerror = (event) => reject(new Error(event.message))
      worker.postMessage(order)
    })
  const slow = await server.predictor('@values/slow')
  const picture = new ImageData(224, 224)
  picture.data.fill(255)
  await Promise.all([tell('open'), slow.predict({ picture })])
  return {
    async predict() {
      const begin = performance.now()
      await slow.predict({ picture })
      return performance.now() - begin
    },
    run: () => tell('run'),
  }
}
