/** `server.predict()` beside a bare `session.run()`: what checking, converting and crossing threads cost. */
import { join } from 'node:path'
import { openSite } from '../support/site.ts'
import { SLOW, VALUES, valuesCatalog } from '../support/values.ts'
import { atMost, median, type Figure } from './figure.ts'
import type { PredictBench } from './predict-page.ts'
import { buildScripts } from './scripts.ts'

const ROOT = join(import.meta.dirname, '../..')
const OUT = join(ROOT, 'node_modules/.cache/inorigin-bench/predict')
/** Turns of each side. */
const ROUNDS = 60
/** The bar is for runs that take at least as long. */
const LEAST_MS = 20

const PAGE = `<!doctype html><meta charset="utf-8"><title>bench</title>
  <script type="module">
    import { serve } from '/inorigin/index.js'
    import { openPredictBench } from '/bench/predict-page.js'
    globalThis.bench = openPredictBench(serve, ${JSON.stringify(valuesCatalog(SLOW))})
  </script>`

export async function measurePredict(): Promise<Figure[]> {
  await buildScripts(OUT, {
    'predict-page': 'predict-page.ts',
    'predict-worker': 'predict-worker.ts',
  })
  const folders = { ...VALUES, '/bench/': OUT }
  const site = await openSite({ folders, pages: { '/predict.html': PAGE } })
  try {
    const tab = await site.open('/predict.html')
    await tab.waitForFunction(() => 'bench' in globalThis)
    const time = (side: keyof PredictBench) =>
      tab.evaluate(async (name) => {
        const { bench } = globalThis as unknown as { bench: Promise<PredictBench> }
        return (await bench)[name]()
      }, side)

    const pairs: { predict: number; run: number }[] = []
    // The first rounds warm both up and are not counted.
    for (let round = -5; round < ROUNDS; round += 1) {
      // Who goes first changes, so that a machine that slows down does not favour one of them.
      const pair = { predict: 0, run: 0 }
      const order = round % 2 === 0 ? (['predict', 'run'] as const) : (['run', 'predict'] as const)
      for (const side of order) pair[side] = await time(side)
      if (round >= 0) pairs.push(pair)
    }
    const [predict, run] = [
      median(pairs.map((pair) => pair.predict)),
      median(pairs.map((pair) => pair.run)),
    ]
    const note = `${predict.toFixed(1)} over ${run.toFixed(1)} ms, median of ${ROUNDS} pairs, WASM`
    const short = run < LEAST_MS ? `; the bar is for runs of ${LEAST_MS} ms and more` : ''
    const ratio = median(pairs.map((pair) => pair.predict / pair.run))
    return [atMost('predict_vs_run', ratio, 1.1, note + short)]
  } finally {
    await site.close()
  }
}
