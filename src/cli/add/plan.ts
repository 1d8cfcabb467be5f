/** What a path given to `inorigin add` becomes: an entry, but for lengths and hashes of its files. */
import { basename, dirname, join } from 'node:path'
import { planMlc } from '../../host/draft/mlc.ts'
import { planGraph, planLayout, refuseTensors, type Plan, type PlanOptions } from '../../host/draft/plan.ts'
import { refuse } from '../../host/draft/refuse.ts'
import { folderOn } from '../onnx/file.ts'
import type { Source } from './source.ts'

/** Throws `invalid_request` that says what to do. */
export async function makePlan(
  source: Source,
  given: Omit<PlanOptions, 'keep'>,
): Promise<Plan> {
  const options: PlanOptions = { ...given, keep: (name) => `--tensor ${name}` }
  const root = source.kind === 'graph' ? dirname(source.path) : source.folder
  const plan = await planIn(root, source, options)
  const implementations = plan.implementations.map((one) => ({
    ...one, items: one.items.map((item) => ({ ...item, path: join(root, item.path) })),
  }))
  return { ...plan, implementations }
}

async function planIn(root: string, source: Source, options: PlanOptions): Promise<Plan> {
  const folder = folderOn(root)
  if (source.kind === 'layout') return planLayout(folder, source.files, options)
  if (options.dtypes !== null) {
    const what = '--dtypes chooses among the graphs of a folder, and this is one model.'
    throw refuse(what, 'Leave it out.')
  }
  if (source.kind === 'graph') return planGraph(folder, basename(source.path), options)
  refuseTensors(options)
  if (options.devices.includes('webgpu')) return planMlc(folder, source.files)
  throw refuse('--device wasm: a model compiled by MLC runs on WebGPU alone.', 'Leave it out.')
}
