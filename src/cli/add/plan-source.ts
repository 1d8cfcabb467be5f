/** Plans the entry for a path passed to `inorigin add`, without lengths and hashes of its files. */
import { planMlc } from '../../draft/mlc.ts'
import {
  planGraph,
  planLayout,
  refuseTensors,
  type Plan,
  type PlanOptions,
} from '../../draft/plan.ts'
import { refuse } from '../../draft/refuse.ts'
import { openFolder } from '../onnx/disk-folder.ts'
import type { Source } from './source.ts'

/** Plans the entry. Item paths are relative to the root. Rejects with `invalid_request`. */
export async function planSource(source: Source, given: Omit<PlanOptions, 'keep'>): Promise<Plan> {
  const options: PlanOptions = { ...given, keep: (name) => `--tensor ${name}` }
  const folder = openFolder(source.root)
  if (source.kind === 'layout') return planLayout(folder, source.files, options)
  if (options.dtypes !== null) {
    const what = '--dtypes chooses among the graphs of a folder, and this is one model.'
    throw refuse(what, 'Leave it out.')
  }
  if (source.kind === 'graph') return planGraph(folder, source.path, options)
  refuseTensors(options)
  if (options.devices.includes('webgpu')) return planMlc(folder, source.files)
  throw refuse('--device wasm: a model compiled by MLC runs only on WebGPU.', 'Leave it out.')
}
