/** Entry of the benchmark page. */
import { serve, type Device, type Server } from '../../src/index.ts'
import { byId, copies, element } from '../dom.ts'
import { saveFile } from '../files.ts'
import { bytes, duration } from '../format.ts'
import { wordsOf } from '../notice.ts'
import { EFFORTS } from './effort.ts'
import { readEnvironment } from './environment.ts'
import { measure } from './measure.ts'
import { toJson, toRows } from './report.ts'
import { SCHEMA, type BenchResult, type BenchSettings, type EffortName } from './result.ts'

/** Version in package.json, which the build sets. */
declare const INORIGIN_VERSION: string

type DeviceChoice = Device | 'auto'

const form = byId('bench-form', HTMLFormElement)
const fields = byId('fields', HTMLFieldSetElement)
const model = byId('model', HTMLSelectElement)
const device = byId('device', HTMLSelectElement)
const effort = byId('effort', HTMLSelectElement)
const start = byId('start', HTMLButtonElement)
const cancel = byId('cancel', HTMLButtonElement)
const progress = byId('progress', HTMLElement)
const bar = byId('bar', HTMLProgressElement)
const phase = byId('phase', HTMLElement)
const said = byId('said', HTMLElement)
const problem = byId('problem', HTMLElement)
const report = byId('report', HTMLElement)
const json = byId('json', HTMLElement)

let server: Server | undefined
let running: AbortController | undefined

/** Starts the server of this page with a device, after closing the earlier one. */
async function startServer(choice: DeviceChoice): Promise<Server> {
  server?.close()
  const worker = new URL('playground-sw.js', document.baseURI)
  server = await serve({ worker, device: choice, isolate: true })
  if (!server.differences.includes('device')) return server
  throw new Error(
    'Another tab runs the models on another device. Close the other tabs and start again.',
  )
}

async function listModels(): Promise<void> {
  try {
    const { models } = await startServer('auto')
    const states = (await models.list()).filter(({ type }) => type === 'model')
    const options = states.map(({ tag, name, status, bytes: size }) => {
      const origin = size === null ? 'from a hub' : bytes(size)
      return new Option(`${name} (${status === 'remote' ? origin : status})`, tag)
    })
    model.replaceChildren(...options)
    model.disabled = false
    start.disabled = false
  } catch (error) {
    fail(error)
  }
}

function readSettings(): BenchSettings {
  const name = effort.value as EffortName
  return {
    tag: model.value,
    device: device.value as DeviceChoice,
    effort: name,
    ...EFFORTS[name],
  }
}

async function run(): Promise<void> {
  const { signal } = (running = new AbortController())
  const began = performance.now()
  setRunning(true)
  try {
    const settings = readSettings()
    showProgress('Starting the server', 0)
    const here = await startServer(settings.device)
    signal.throwIfAborted()
    const { tag } = settings
    const options = { server: here, tag, effort: settings, signal, onProgress: showProgress }
    const measurements = await measure(options)
    const environment = await readEnvironment(here, tag)
    const seconds = (performance.now() - began) / 1_000
    const date = new Date().toISOString().slice(0, 10)
    const about = { schema: SCHEMA, version: INORIGIN_VERSION, date, seconds } as const
    show({ ...about, settings, environment, ...measurements })
  } catch (error) {
    if (signal.aborted) said.textContent = 'The benchmark was canceled.'
    else fail(error)
  } finally {
    // If one of several requests failed, the others end here.
    running.abort()
    setRunning(false)
  }
}

function setRunning(isRunning: boolean): void {
  fields.disabled = isRunning
  start.hidden = isRunning
  cancel.hidden = !isRunning
  progress.hidden = !isRunning
  if (isRunning) {
    problem.hidden = true
    report.hidden = true
    said.textContent = 'The benchmark is running.'
    cancel.focus()
  } else start.focus()
}

function showProgress(text: string, share: number): void {
  phase.textContent = text
  bar.value = share
}

function fail(error: unknown): void {
  said.textContent = ''
  problem.textContent = `The benchmark failed. ${wordsOf(error)}`
  problem.hidden = false
}

function show(result: BenchResult): void {
  said.textContent = `The benchmark took ${duration(1_000 * result.seconds)}.`
  const rows = toRows(result).map(([name, value]) => {
    const row = element('tr', '')
    const head = element('th', '', name)
    head.scope = 'row'
    row.append(head, element('td', '', value))
    return row
  })
  byId('rows', HTMLElement).replaceChildren(...rows)
  json.textContent = toJson(result)
  report.hidden = false
}

/** Saves content as a file whose name has the browser's. */
function save(content: Blob, ending: string): void {
  const { browser, browserVersion } = readResult().environment
  const name = `${browser}-${browserVersion}`.toLowerCase().replace(/[^a-z0-9.]+/g, '-')
  saveFile(`inorigin-bench-${name}.${ending}`, content)
}

/** Returns the result that the page shows. */
const readResult = (): BenchResult => JSON.parse(json.textContent ?? '') as BenchResult

const saveJson = (): void =>
  save(new Blob([json.textContent ?? ''], { type: 'application/json' }), 'json')

async function savePicture(): Promise<void> {
  const { drawPicture } = await import('./picture.ts')
  save(await drawPicture(readResult()), 'png')
}

form.addEventListener('submit', (event) => {
  event.preventDefault()
  void run()
})
cancel.addEventListener('click', () => running?.abort())
copies(byId('copy', HTMLButtonElement), () => json.textContent ?? '')
byId('save', HTMLButtonElement).addEventListener('click', saveJson)
byId('save-picture', HTMLButtonElement).addEventListener('click', () => {
  savePicture().catch(fail)
})
void listModels()
