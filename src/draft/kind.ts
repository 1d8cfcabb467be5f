/** Drafts models by their kind: one graph, the layout of web exports, or a folder of MLC. */
import type { HubFile } from '../catalog/hub/variants.ts'
import { CONFIG_FILE } from '../catalog/mlc/model-files.ts'
import type { InoriginError } from '../error.ts'
import type { Folder } from './folder.ts'
import { findFormatByPath, refuse } from './refuse.ts'
import { planMlc } from './mlc.ts'
import { planGraph, planLayout, refuseTensors, type Plan, type PlanOptions } from './plan.ts'

export type Kind = { kind: 'graph'; path: string } | { kind: 'layout' } | { kind: 'mlc' }

const LAYOUT = 'config.json, tokenizer.json and onnx/model*.onnx for a language model'

/** Returns the kind of a folder. Throws `invalid_request` with the expected files. */
export function kindOf(folder: string, files: readonly HubFile[]): Kind {
  const paths = files.map(({ path }) => path)
  const has = (path: string): boolean => paths.includes(path)
  if (has(CONFIG_FILE)) return { kind: 'mlc' }
  const hasGraphs = paths.some((path) => path.startsWith('onnx/'))
  if (has('config.json') && has('tokenizer.json') && hasGraphs) return { kind: 'layout' }
  const graphs = paths.filter((path) => path.endsWith('.onnx'))
  const [only] = graphs
  if (only === undefined) throw noGraph(folder, paths)
  if (graphs.length === 1) return { kind: 'graph', path: only }
  throw refuse(
    `${folder} has ${graphs.length} graphs: ${graphs.join(', ')}.`,
    `Choose one of them, or add ${LAYOUT}.`,
  )
}

/** Returns the error for a folder without a graph. It names the other format if the folder has one. */
function noGraph(folder: string, paths: readonly string[]): InoriginError {
  for (const path of paths) {
    const format = findFormatByPath(path)
    const whole = `${folder.replace(/[/\\]$/, '')}/${path}`
    if (format)
      return refuse(`${folder} has no .onnx file. ${path} ${format.what}`, format.todo(whole))
  }
  return refuse(`${folder} has no .onnx file.`, `Choose a folder with one, or with ${LAYOUT}.`)
}

/** Resolves with the plan. Item paths are relative to the folder. Rejects with `invalid_request`. */
export async function planKind(
  folder: Folder,
  found: Kind,
  files: readonly HubFile[],
  options: PlanOptions,
): Promise<Plan> {
  if (found.kind === 'layout') return planLayout(folder, files, options)
  if (options.dtypes !== null) {
    const what = '--dtypes chooses among the graphs of a folder, and this is one model.'
    throw refuse(what, 'Leave it out.')
  }
  if (found.kind === 'graph') return planGraph(folder, found.path, options)
  refuseTensors(options)
  if (options.devices.includes('webgpu')) return planMlc(folder, files)
  throw refuse('--device wasm: a model compiled by MLC runs only on WebGPU.', 'Leave it out.')
}
