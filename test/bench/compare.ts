/** Ours beside others: each in a dedicated worker, on files made for the purpose. */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { openSite, type Site } from '../support/site.ts'
import { writeGguf } from './models/gguf.ts'
import {
  GGUF_MODEL,
  type GgufFormat,
  type OnnxFormat,
  REAL_MODEL,
  type ShapeName,
} from './models/shapes.ts'
import { writeModel } from './models/write-model.ts'
import { findAdapter, ISOLATION, openSide, type OpenSide, PAGE } from './open-side.ts'
import { buildScripts } from './scripts.ts'
import type { Opening, SideName } from './side.ts'

const ROOT = join(import.meta.dirname, '../..')
const CACHE = join(ROOT, 'node_modules/.cache/inorigin-bench')
const SCRIPTS = join(CACHE, 'sides')
/** Folder of the models that are written. */
export const MODELS = join(CACHE, 'models')

/** Script of each side. */
const SIDES: Readonly<Record<SideName, string>> = {
  inorigin: 'side-inorigin.ts',
  transformers: 'side-transformers.ts',
  wllama: 'side-wllama.ts',
  webllm: 'side-webllm.ts',
}

export const SIDE_NAMES = Object.keys(SIDES) as SideName[]

/** Installs what is compared with and builds the workers. */
export function prepareComparison(): Promise<void> {
  return buildSides(SCRIPTS, SIDE_NAMES)
}

/** Builds the workers of these sides into a folder of their own. Installs the packages they need. */
export async function buildSides(folder: string, sides: readonly SideName[]): Promise<void> {
  if (sides.includes('transformers') || sides.includes('wllama')) installPeers()
  const scripts = Object.fromEntries(sides.map((side) => [side, SIDES[side]]))
  await buildScripts(folder, scripts, 'error')
}

/** Folder of the packages that are compared with. */
export const PEER_PACKAGES = join(import.meta.dirname, 'node_modules')

function installPeers(): void {
  if (existsSync(join(PEER_PACKAGES, '@wllama/wllama'))) return
  const quiet = ['--ignore-scripts', '--no-audit', '--no-fund']
  const args = ['ci', ...quiet, '--prefix', import.meta.dirname]
  execFileSync('npm', args, { stdio: 'inherit' })
}

/** Writes a model, unless it is there. */
export function prepareModel(model: ShapeName, format: OnnxFormat | GgufFormat): void {
  const folder = join(MODELS, model)
  if (format === 'q4_0' || format === 'q8_0') writeGguf(model, format, folder)
  else writeModel(model, format, folder)
}

/** Folders of models with real weights. */
export interface RealModels {
  /** Forms that `tools/exporters/fidelity.py` makes. */
  real?: string | undefined
  /** A GGUF file. */
  gguf?: string | undefined
}

/** A site with the models, all sides and their runtimes; on a GPU where the machine has one. */
export async function openComparison({ real, gguf }: RealModels = {}): Promise<Site> {
  const open = (gpu: 'software' | 'hardware'): Promise<Site> =>
    openSite({
      gpu,
      folders: {
        ...(real !== undefined && { [`/bench/models/${REAL_MODEL}/`]: real }),
        ...(gguf !== undefined && { [`/bench/models/${GGUF_MODEL}/`]: gguf }),
        '/bench/models/': MODELS,
        '/bench/sides/': SCRIPTS,
        '/bench/ort/': join(PEER_PACKAGES, 'onnxruntime-web/dist'),
        '/bench/wllama/': join(PEER_PACKAGES, '@wllama/wllama/esm/wasm'),
      },
      pages: { '/side.html': PAGE, '/isolated.html': PAGE },
      headers: (path) => (path === '/side.html' ? {} : ISOLATION),
    })
  const site = await open('hardware')
  const adapter = await findAdapter(site)
  if (adapter && !adapter.software) return site
  await site.close()
  return open('software')
}

/** Opens a side on WASM with a model of that shape, which is written if it is not there. */
export async function openOnWasm(
  site: Site,
  name: SideName,
  opening: { model: ShapeName; format: OnnxFormat | GgufFormat; threads: number },
): Promise<OpenSide> {
  prepareModel(opening.model, opening.format)
  return openPrepared(site, name, opening)
}

/** Opens a side on WASM with a model that is there. */
export async function openPrepared(
  site: Site,
  name: SideName,
  opening: Pick<Opening, 'model' | 'format' | 'threads' | 'precision'>,
): Promise<OpenSide> {
  const side = await openSide(site, name, opening.threads)
  try {
    await side.order({ type: 'open', device: 'wasm', ...opening })
    return side
  } catch (error) {
    await side.close()
    throw error
  }
}
