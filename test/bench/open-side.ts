/** One side in a tab and a worker of its own, on a site that has the scripts. */
import type { Page } from 'playwright'
import type { Answers, Order, Run, SideName, Task } from './side.ts'

/** A page in which a side runs. */
export const PAGE = '<!doctype html><meta charset="utf-8"><title>bench</title>'

/** Headers of a document that may use threads, and of scripts and workers in it. */
export const ISOLATION = {
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-embedder-policy': 'require-corp',
}

/** What opens tabs of a site. */
interface Pages {
  open(path: string): Promise<Page>
}

export interface Adapter {
  /** Vendor and architecture. */
  name: string
  /** `true` if it computes on the CPU. */
  software: boolean
  /** Features of WebGPU, such as `shader-f16`. */
  features: readonly string[]
}

/** Resolves with the adapter that pages get; `null` if the browser offers no WebGPU. */
export async function findAdapter(site: Pages): Promise<Adapter | null> {
  const page = await site.open('/side.html')
  const found = await page.evaluate(async () => {
    const adapter = await navigator.gpu?.requestAdapter()
    const { vendor = '', architecture = '', isFallbackAdapter = false } = adapter?.info ?? {}
    if (!adapter) return null
    const features = [...adapter.features].sort()
    return { name: `${vendor} ${architecture}`, software: isFallbackAdapter, features }
  })
  await page.close()
  return found
}

/** One side in a tab and a worker of its own. */
export interface OpenSide {
  order<T extends Order['type']>(order: Order & { type: T }): Promise<Answers[T]>
  /** Runs one task alone. */
  run(task: Task): Promise<Run>
  page: Page
  close(): Promise<void>
}

export async function openSide(site: Pages, name: SideName, threads = 1): Promise<OpenSide> {
  const page = await site.open(threads > 1 ? '/isolated.html' : '/side.html')
  await page.evaluate((script) => {
    Object.assign(globalThis, { side: new Worker(script, { type: 'module' }) })
  }, `/bench/sides/${name}.js`)

  async function order<T extends Order['type']>(what: Order & { type: T }): Promise<Answers[T]> {
    const { answer, error } = await page.evaluate((given) => {
      const { side } = globalThis as unknown as { side: Worker }
      return new Promise<{ answer?: unknown; error?: string }>((resolve) => {
        side.onmessage = ({ data }) => resolve(data)
        side.onerror = ({ message }) => resolve({ error: message })
        side.postMessage(given)
      })
    }, what)
    if (error !== undefined) throw new Error(`${name}: ${error}`)
    return answer as Answers[T]
  }

  return {
    page,
    order,
    async run(task) {
      const { runs } = await order({ type: 'run', tasks: [task], together: false })
      return runs[0] as Run
    },
    close: () => page.close(),
  }
}
