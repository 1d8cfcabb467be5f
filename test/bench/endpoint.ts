/** The endpoint beside the engine it stands on: what the way through `fetch` costs. */
import { join } from 'node:path'
import { openSite } from '../support/site.ts'
import { endlessModel } from './endless.ts'
import { atLeast, atMost, median, type Figure } from './figure.ts'
import type { Bench, Timing, Wish } from './page.ts'
import { buildScripts } from './scripts.ts'

const ROOT = join(import.meta.dirname, '../..')
const OUT = join(ROOT, 'node_modules/.cache/inorigin-bench/endpoint')
/** Turns of each side. */
const ROUNDS = 15
const HEADER_ROUNDS = 40
/** Tokens of one decode. */
const TOKENS = 512

export async function measureEndpoint(): Promise<Figure[]> {
  await buildScripts(OUT, { page: 'page.ts', 'engine-worker': 'engine-worker.ts' })
  const page = `<!doctype html><meta charset="utf-8"><title>bench</title>
    <script type="module">
      import { serve } from '/inorigin/index.js'
      import { openBench } from '/bench/page.js'
      globalThis.bench = openBench(serve)
    </script>`
  const model = endlessModel(join(ROOT, 'demo/models/guide'), '/bench/', '@bench/endless')
  const site = await openSite({
    folders: { '/bench/': OUT },
    pages: { '/bench.html': page, ...model },
  })
  try {
    const tab = await site.open('/bench.html')
    await tab.waitForFunction(() => 'bench' in globalThis)
    const time = (side: 'endpoint' | 'engine', wish: Wish) =>
      tab.evaluate(
        async ([name, what]) => {
          const { bench } = globalThis as unknown as { bench: Promise<Bench> }
          return (await bench)[name](what)
        },
        [side, wish] as const,
      )
    const headers = () =>
      tab.evaluate(async () =>
        (await (globalThis as unknown as { bench: Promise<Bench> }).bench).headers(),
      )

    const ratios: number[] = []
    const rates = { endpoint: [] as number[], engine: [] as number[] }
    // The first round warms both up and is not counted.
    for (let round = 0; round <= ROUNDS; round += 1) {
      // Who goes first changes, so that a machine that slows down does not favour one of them.
      const order =
        round % 2 === 0 ? (['endpoint', 'engine'] as const) : (['engine', 'endpoint'] as const)
      const wish: Wish = { seed: round, maxTokens: TOKENS }
      const timings: Partial<Record<'endpoint' | 'engine', Timing>> = {}
      for (const side of order) timings[side] = await time(side, wish)
      const { endpoint, engine } = timings
      if (!endpoint || !engine || endpoint.text !== engine.text || endpoint.tokens !== TOKENS) {
        throw new Error('The endpoint and the engine did not give the same full-length text.')
      }
      if (round === 0) continue
      rates.endpoint.push(rateOf(endpoint))
      rates.engine.push(rateOf(engine))
      ratios.push(rateOf(endpoint) / rateOf(engine))
    }
    const times: number[] = []
    for (let round = 0; round < HEADER_ROUNDS; round += 1) times.push(await headers())
    const [through, alone] = [median(rates.endpoint), median(rates.engine)].map((rate) =>
      rate.toFixed(0),
    )
    return [
      atLeast(
        'endpoint_throughput',
        median(ratios),
        0.95,
        `${through} over ${alone} tokens/s, ${ROUNDS} pairs`,
      ),
      atMost('headers_ms', median(times), 10, `median of ${HEADER_ROUNDS} streamed requests`),
    ]
  } finally {
    await site.close()
  }
}

/** Tokens per second from the first text to the last. */
function rateOf({ tokens, milliseconds }: Timing): number {
  return ((tokens - 1) / milliseconds) * 1000
}
