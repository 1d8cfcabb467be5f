/**
 * `npm run bench`: the measured figures, each against its bar. Both sides of a ratio are measured in
 * one run, on the same files. `--json FILE` also writes them into the object in that file, where figures
 * that this run did not measure stay. `--only NAME` (endpoint, startup, failover, images, upstream, bridge, predict,
 * session, forcing, wasm, webgpu, drafts, memory, formats, peers-decode, peers-prefill, peers-threads, context, sizes) measures a
 * part.
 * `--peers` is short for the three parts with the peers. `--dtypes` prints a table of the formats of
 * weights instead, for all shapes or those of `--shape NAME`. `--fidelity DIR` compares forms of a
 * model with real weights instead; `--sides NAMES` and `--prompts COUNT` measure a part of them.
 * `--gguf FILE` measures a GGUF file instead, ours beside wllama, and `--model TAG` that of an entry of the
 * playground, with one thread and with two. With `--fidelity DIR`, transformers.js runs ONNX forms of the
 * model in that folder beside them. `--gpu-kit DIR` measures nothing: it packs what a machine with a GPU
 * and no network needs to do so, with the libraries of `--mlc FOLDER` for WebLLM.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { sizes } from '../../.ci/build/size.ts'
import { buildDemo } from '../setup/demo.ts'
import type { Site } from '../support/site.ts'
import { measureBridge } from './bridge.ts'
import { measureContext } from './context.ts'
import { openComparison, prepareComparison, type RealModels } from './compare.ts'
import { measureSide, printComparison, type Device, type Effort, type Measured } from './decode.ts'
import { measureDrafts } from './drafts.ts'
import { measureEndpoint } from './endpoint.ts'
import { measureFailover } from './failover.ts'
import { measureFidelity } from './fidelity.ts'
import { measureForcing } from './forcing.ts'
import { joinGguf, linkGguf, measureGguf } from './gguf.ts'
import { packGpuKit } from './gpu-kit/pack.ts'
import { atLeast, atMost, printFigures, type Figure } from './figure.ts'
import { compareDefault, MEASURED_SHAPES, printFormats } from './formats.ts'
import { measureImages } from './images.ts'
import { measureLoad } from './memory.ts'
import { type Adapter, findAdapter } from './open-side.ts'
import { PEER_PARTS } from './peers.ts'
import { measurePredict } from './predict.ts'
import { measureSession } from './session.ts'
import { measureStartup } from './startup.ts'
import { measureUpstream } from './upstream.ts'

const FULL: Effort = { rounds: 5, answer: 64 }
const SOFTWARE: Effort = { rounds: 1, answer: 12 }
/** Where the difference is small. */
const SOFTWARE_PAIRS: Effort = { rounds: 3, answer: 16 }

const OPTIONS = {
  json: { type: 'string' },
  only: { type: 'string', multiple: true },
  peers: { type: 'boolean', default: false },
  dtypes: { type: 'boolean', default: false },
  shape: { type: 'string', multiple: true },
  fidelity: { type: 'string' },
  sides: { type: 'string' },
  prompts: { type: 'string' },
  gguf: { type: 'string' },
  model: { type: 'string' },
  'gpu-kit': { type: 'string' },
  mlc: { type: 'string' },
} as const

/** Parts that need the site where sides are compared. */
const COMPARED: Readonly<Record<string, (site: Site) => Promise<Figure[]>>> = {
  wasm: (site) => compareOn(site, 'wasm'),
  webgpu: (site) => compareOn(site, 'webgpu'),
  drafts: draftsOn,
  memory: measureMemory,
  formats: compareDefault,
  ...PEER_PARTS,
  context: measureContext,
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: OPTIONS })
  buildDemo()
  if (values['gpu-kit'] !== undefined)
    return packGpuKit({ out: resolve(values['gpu-kit']), mlc: values.mlc && resolve(values.mlc) })
  if (values.dtypes) {
    const shapes = MEASURED_SHAPES.filter((shape) => values.shape?.includes(shape) ?? true)
    return onSite((site) => printFormats(site, shapes))
  }
  if (values.gguf !== undefined || values.model !== undefined) {
    const file = values.gguf === undefined ? joinGguf(values.model ?? '') : resolve(values.gguf)
    const folders = {
      gguf: values.gguf === undefined ? dirname(file) : linkGguf(file),
      real: values.fidelity === undefined ? undefined : resolve(values.fidelity),
    }
    return onSite(async (site) => {
      const threads = values.gguf === undefined ? [1, 2] : [2]
      const onnx = folders.real === undefined ? [] : (['q4', 'q8'] as const)
      const figures = await measureGguf(site, { file, threads, onnx })
      printFigures(figures)
      if (values.json !== undefined) writeFigures(values.json, figures)
    }, folders)
  }
  if (values.fidelity !== undefined) {
    const folder = resolve(values.fidelity)
    const sides = values.sides?.split(',')
    const prompts = values.prompts === undefined ? undefined : Number(values.prompts)
    if (prompts !== undefined && !(prompts >= 1)) throw new Error('--prompts must be 1 or more.')
    return onSite(
      async (site) => {
        const figures = await measureFidelity(site, { folder, sides, prompts })
        if (values.json !== undefined) writeFigures(values.json, figures)
      },
      { real: folder },
    )
  }
  const only = values.peers ? [...Object.keys(PEER_PARTS), ...(values.only ?? [])] : values.only
  const wanted = (part: string) => only === undefined || only.includes(part)
  const figures: Figure[] = []
  if (wanted('endpoint')) figures.push(...(await measureEndpoint()))
  if (wanted('startup')) figures.push(...(await measureStartup()))
  if (wanted('failover')) figures.push(...(await measureFailover()))
  if (wanted('images')) figures.push(...(await measureImages()))
  if (wanted('upstream')) figures.push(...(await measureUpstream()))
  if (wanted('bridge')) figures.push(...(await measureBridge()))
  if (wanted('predict')) figures.push(...(await measurePredict()))
  if (wanted('session')) figures.push(...(await measureSession()))
  if (wanted('forcing')) figures.push(...(await measureForcing()))
  const compared = Object.entries(COMPARED).filter(([part]) => wanted(part))
  if (compared.length > 0) {
    await onSite(async (site) => {
      for (const [, measure] of compared) figures.push(...(await measure(site)))
    })
  }
  if (wanted('sizes')) figures.push(...measureSizes())
  printFigures(figures)
  if (values.json !== undefined) writeFigures(values.json, figures)
}

/** Adds the figures to those of the file, so that parts which take minutes can be run one by one. */
function writeFigures(file: string, figures: readonly Figure[]): void {
  const before = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as object) : {}
  const measured = Object.fromEntries(figures.map(({ name, value }) => [name, value]))
  writeFileSync(file, `${JSON.stringify({ ...before, ...measured }, null, 2)}\n`)
}

async function onSite(
  measure: (site: Site) => Promise<void>,
  folders: RealModels = {},
): Promise<void> {
  await prepareComparison()
  const site = await openComparison(folders)
  try {
    console.log(await describe(site))
    await measure(site)
  } finally {
    await site.close()
  }
}

const effortOf = (gpu: Adapter | null): Effort => (gpu?.software ? SOFTWARE : FULL)

async function draftsOn(site: Site): Promise<Figure[]> {
  const gpu = await findAdapter(site)
  return gpu ? measureDrafts(site, gpu.software ? SOFTWARE_PAIRS : FULL) : []
}

async function compareOn(site: Site, device: Device): Promise<Figure[]> {
  const gpu = device === 'webgpu' ? await findAdapter(site) : null
  if (device === 'webgpu' && gpu === null) {
    console.log('webgpu: this browser offers none here')
    return []
  }
  const effort = effortOf(gpu)
  const ours = await measureSide(site, 'inorigin', device, effort)
  const theirs = await measureSide(site, 'transformers', device, effort)
  if (ours.texts.join('\0') !== theirs.texts.join('\0')) {
    throw new Error(`On ${device} the two sides did not write the same text.`)
  }
  printComparison(device, ours, theirs)
  return device === 'wasm' ? onWasm(ours, theirs) : onWebgpu(ours, theirs)
}

function onWasm(ours: Measured, theirs: Measured): Figure[] {
  return [
    atLeast(
      'decode_vs_transformers_64',
      ratioAt(64, ours, theirs),
      0.95,
      'tokens/s over theirs, WASM',
    ),
    atMost('turn2_ttft', ours.turn2, 0.15, 'to the first token, over turn 1, 1,000 tokens, WASM'),
  ]
}

function onWebgpu(ours: Measured, theirs: Measured): Figure[] {
  const note = 'tokens/s over theirs, with the same features of the GPU'
  return [
    atLeast('decode_vs_transformers_2048_webgpu', ratioAt(2048, ours, theirs), 1.5, note),
    atLeast('concurrent4_webgpu', ours.concurrent.rate, 2, 'four streams at once over one by one'),
  ]
}

function ratioAt(context: number, ours: Measured, theirs: Measured): number {
  return (ours.decode[context] ?? 0) / (theirs.decode[context] ?? 0)
}

async function measureMemory(site: Site): Promise<Figure[]> {
  const peaks = await measureLoad(site)
  if (peaks === null) return []
  const note = 'memory of the process at its peak over 215 MB loaded, WASM'
  const start = `${peaks.first.toFixed(2)} with the start of the runtime`
  return [atMost('load_heap', peaks.again, 1.3, `${note}; ${start}`)]
}

function measureSizes(): Figure[] {
  const names: Record<string, string> = { 'sw.js': 'sw_gzip_kb', 'index.js': 'client_gzip_kb' }
  return sizes(join(import.meta.dirname, '../../dist')).map(({ file, size, limit }) =>
    atMost(names[file] ?? file, size, limit, `${file} and what it loads at once`),
  )
}

async function describe(site: Site): Promise<string> {
  const gpu = await findAdapter(site)
  const processors = `${cpus().length} x ${cpus()[0]?.model ?? 'CPU'}`
  return `${processors}, Chromium ${site.browser.version()}, WebGPU: ${gpu?.name ?? 'none'}`
}

await main()
