/** A stream of frames through a session: how busy it keeps the main thread of the page. */
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CDPSession, Page } from 'playwright'
import type { Catalog } from '../../src/index.ts'
import { onnxFile } from '../support/onnx.ts'
import { openSite } from '../support/site.ts'
import { atMost, median, reported, type Figure } from './figure.ts'
import { buildScripts } from './scripts.ts'
import type { SessionBench, Streamed } from './session-page.ts'

const ROOT = join(import.meta.dirname, '../..')
const OUT = join(ROOT, 'node_modules/.cache/inorigin-bench/session')
/** Length of one stream in milliseconds. */
const STREAM_MS = 10_000
const ROUNDS = 3
/** Length in milliseconds from which browsers call a task long. https://w3c.github.io/longtasks/ */
const LONG_TASK_MS = 50

/** Smooths the mean color of the frames, so that the stream costs more than the model. */
const MODEL = onnxFile({
  inputs: [
    { name: 'picture', type: 'float32', shape: [1, 3, 224, 224] },
    { name: 'before', type: 'float32', shape: [1, 3, 1, 1] },
  ],
  outputs: [
    { name: 'after', type: 'float32', shape: [1, 3, 1, 1] },
    { name: 'color', type: 'float32', shape: [1, 3, 1, 1] },
  ],
  nodes: [
    { type: 'GlobalAveragePool', inputs: ['picture'], outputs: ['mean'] },
    { type: 'Sub', inputs: ['mean', 'before'], outputs: ['change'] },
    { type: 'Mul', inputs: ['change', 'tenth'], outputs: ['part'] },
    { type: 'Add', inputs: ['before', 'part'], outputs: ['after'] },
    { type: 'Identity', inputs: ['after'], outputs: ['color'] },
  ],
  weights: [
    {
      name: 'tenth',
      type: 'float32',
      shape: [],
      data: new Uint8Array(Float32Array.of(0.1).buffer),
    },
  ],
})

const CATALOG: Catalog = {
  version: 1,
  entries: [
    {
      type: 'predictor',
      tag: '@bench/smooth',
      name: 'Smooth color',
      created: '2026-01-01T00:00:00Z',
      signature: {
        inputs: [
          { name: 'picture', type: 'image' },
          { name: 'before', type: 'float32' },
        ],
        outputs: [
          { name: 'color', type: 'float32' },
          { name: 'after', type: 'float32' },
        ],
      },
      states: [{ input: 'before', output: 'after' }],
      implementations: [
        {
          id: 'wasm',
          engine: 'onnx',
          device: 'wasm',
          resources: [
            {
              type: 'onnx',
              url: '/bench/smooth.onnx',
              name: 'smooth.onnx',
              bytes: MODEL.length,
              sha256: createHash('sha256').update(MODEL).digest('hex'),
            },
          ],
          bindings: {
            picture: {
              tensor: 'picture',
              image: { width: 224, height: 224, channels: 'rgb', order: 'nchw' },
            },
          },
        },
      ],
    },
  ],
}

const PAGE = `<!doctype html><meta charset="utf-8"><title>bench</title>
  <script type="module">
    import { serve } from '/inorigin/index.js'
    import { openSessionBench } from '/bench/session-page.js'
    globalThis.bench = openSessionBench(serve, ${JSON.stringify(CATALOG)})
  </script>`

export async function measureSession(): Promise<Figure[]> {
  await buildScripts(OUT, { 'session-page': 'session-page.ts' })
  writeFileSync(join(OUT, 'smooth.onnx'), MODEL)
  const site = await openSite({ folders: { '/bench/': OUT }, pages: { '/session.html': PAGE } })
  try {
    const tab = await site.open('/session.html')
    await tab.waitForFunction(() => 'bench' in globalThis)
    const devtools = await tab.context().newCDPSession(tab)
    await devtools.send('Performance.enable')
    const [bare, full]: [Busy[], Busy[]] = [[], []]
    for (let round = 0; round < ROUNDS; round += 1) {
      bare.push(await stream(tab, devtools, false))
      full.push(await stream(tab, devtools, true))
    }
    return toFigures(bare, full)
  } finally {
    await site.close()
  }
}

interface Busy extends Streamed {
  /** Time in tasks of the main thread, in milliseconds. */
  tasks: number
}

async function stream(tab: Page, devtools: CDPSession, isPredicted: boolean): Promise<Busy> {
  const readTasks = async (): Promise<number> => {
    const { metrics } = await devtools.send('Performance.getMetrics')
    return 1000 * (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? NaN)
  }
  const before = await readTasks()
  const seen = await tab.evaluate(
    async ([milliseconds, predicts]) => {
      const { bench } = globalThis as unknown as { bench: Promise<SessionBench> }
      return (await bench).stream(milliseconds, predicts)
    },
    [STREAM_MS, isPredicted] as const,
  )
  return { ...seen, tasks: (await readTasks()) - before }
}

function toFigures(bare: readonly Busy[], full: readonly Busy[]): Figure[] {
  const middle = (all: readonly Busy[], pick: (one: Busy) => number) => median(all.map(pick))
  const share = ({ tasks, elapsed }: Busy): number => (100 * tasks) / elapsed
  const longest = middle(full, (one) => one.longest)
  const rate = middle(full, (one) => (1000 * one.answered) / one.elapsed)
  const shown = middle(full, (one) => (1000 * one.shown) / one.elapsed)
  const without = `without the session ${middle(bare, (one) => one.longest).toFixed(1)} ms`
  const idle = `${middle(bare, share).toFixed(1)} % without the session`
  const note = `median of ${ROUNDS} streams of ${STREAM_MS / 1000} s, frames of 224 x 224, WASM`
  return [
    atMost('session_longest_task_ms', longest, LONG_TASK_MS, `${without}; ${note}`),
    reported('session_main_thread_percent', middle(full, share), `in tasks; ${idle}`),
    reported('session_frames_per_second', rate, `answered, of ${shown.toFixed(1)} shown`),
  ]
}
