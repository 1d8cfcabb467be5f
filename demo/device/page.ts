/** The page about this device: hardware, isolation, storage, the host, its models and its log. */
import type { Explanation, Server } from '../../src/index.ts'
import { element } from '../dom.ts'
import { bytes } from '../format.ts'
import type { FillPage } from '../page.ts'
import { troubleWith } from '../trouble.ts'
import { readGpu, type GpuFacts } from './gpu.ts'
import { createHostView } from './host.ts'
import { createLog } from './log.ts'

type Row = readonly [name: string, value: string]

export function fillDevicePage(starting: Promise<Server>): FillPage {
  return (body, signal) => {
    const said = element('p', 'quiet', 'Reading the device …')
    said.role = 'status'
    body.replaceChildren(said)
    starting
      .then((server) => show(server))
      .catch((error: unknown) => {
        if (!signal.aborted) said.textContent = troubleWith('the device', error)
      })

    async function show(server: Server): Promise<void> {
      const log = createLog()
      const host = createHostView(server, signal)
      const [gpu, explanation, usage] = await Promise.all([
        readGpu(),
        explainAny(server, signal),
        server.storage.usage(),
      ])
      if (signal.aborted) return
      const { originBytes, quotaBytes, persisted } = usage
      body.replaceChildren(
        section('Processor', processorRows(explanation)),
        section('Graphics', gpuRows(gpu, explanation)),
        ...(gpu ? [listOf('Features of the adapter', gpu.features)] : []),
        ...(gpu ? [limitsOf(gpu)] : []),
        section('Storage', [
          ['Models', bytes(usage.bytes)],
          ['Files of the library', bytes(usage.assetBytes)],
          ['This site in all', originBytes === null ? 'not reported' : bytes(originBytes)],
          ['Limit of the browser', quotaBytes === null ? 'not reported' : bytes(quotaBytes)],
          ['Kept until deleted', persisted ? 'yes' : 'no, the browser may delete it'],
        ]),
        host.element,
        log.element,
        benchmarkLink(),
      )
      await Promise.all([host.refresh(), followTrace(server, [host, log], signal)])
    }
  }
}

interface TraceView {
  take(event: Parameters<ReturnType<typeof createLog>['take']>[0]): void
}

async function followTrace(
  server: Server,
  views: readonly TraceView[],
  signal: AbortSignal,
): Promise<void> {
  for await (const event of server.trace({ signal })) {
    for (const view of views) view.take(event)
  }
}

/**
 * Resolves with the explanation of some entry; the device in it is the same for all. An entry whose files are
 * not known would ask its hub.
 */
async function explainAny(server: Server, signal: AbortSignal): Promise<Explanation | undefined> {
  const states = await server.models.list()
  const known = states.find(({ bytes: size }) => size !== null)
  return known && server.explain(known.tag, { signal })
}

function processorRows(explanation: Explanation | undefined): Row[] {
  const { wasm, memory, cores } = explanation?.device ?? {}
  const count = wasm?.threadCount ?? 1
  const threads = wasm?.threads
    ? `${count} of ${navigator.hardwareConcurrency} logical processors`
    : '1, because the page is not cross-origin isolated'
  return [
    ['Logical processors', String(cores ?? navigator.hardwareConcurrency)],
    ['WASM threads', threads],
    ['WASM SIMD', wasm?.simd ? 'yes' : 'no'],
    ['Cross-origin isolated', crossOriginIsolated ? 'yes' : 'no'],
    ['Memory', memory ? `${bytes(memory)} or more, as the browser reports it` : 'not reported'],
  ]
}

function gpuRows(gpu: GpuFacts | undefined, explanation: Explanation | undefined): Row[] {
  if (!gpu) return [['WebGPU', 'gpu' in navigator ? 'no adapter' : 'not in this browser']]
  return [
    ['Adapter', gpu.name],
    ['Kind', gpu.isSoftware ? 'software on the processor' : 'hardware'],
    ['Self-test', selfTestOf(explanation)],
  ]
}

/** Returns the verdict of the library's own test of the GPU. */
function selfTestOf(explanation: Explanation | undefined): string {
  const gpu = explanation?.device.gpu
  if (gpu) return gpu.tested ? 'passed' : 'not run yet: the first model on this GPU starts it'
  const why = explanation?.reasons.find(({ device }) => device === 'webgpu')?.why
  return why ? `the GPU is not used: ${why}` : 'the GPU is not used'
}

function section(title: string, rows: readonly Row[]): HTMLElement {
  const made = element('section', '')
  const list = element('dl', 'facts')
  const parts = rows.flatMap(([name, value]) => [element('dt', '', name), element('dd', '', value)])
  list.append(...parts)
  made.append(element('h2', '', title), list)
  return made
}

function listOf(title: string, items: readonly string[]): HTMLElement {
  const details = element('details', '')
  const list = element('ul', 'traits')
  list.append(...items.map((item) => element('li', '', item)))
  details.append(element('summary', '', `${title}: ${items.length}`), list)
  return details
}

function limitsOf({ limits }: GpuFacts): HTMLElement {
  const details = element('details', '')
  const list = element('dl', 'facts')
  const parts = limits.flatMap(([name, value]) => [
    element('dt', '', name),
    element('dd', '', value.toLocaleString('en')),
  ])
  list.append(...parts)
  details.append(element('summary', '', `Limits of the adapter: ${limits.length}`), list)
  return details
}

function benchmarkLink(): HTMLElement {
  const line = element('p', '')
  const link = element('a', '', 'Measure how fast this device is')
  link.href = './bench.html'
  line.append(link, ', and save the result as JSON or as a picture.')
  return line
}
