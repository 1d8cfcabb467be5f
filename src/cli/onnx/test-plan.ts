/** Tests the planned model before anything is copied, and adds what the author must know to its notes. */
import { join } from 'node:path'
import { sumBytes } from '../../catalog/memory-bytes.ts'
import type { Item } from '../../draft/items.ts'
import type { Plan } from '../../draft/plan.ts'
import { readInside, type ModelRoot } from '../add/model-root.ts'
import { checkBindings, type ModelTensors } from './check-bindings.ts'
import { checkSteps } from './check-steps.ts'
import { openFolder } from './disk-folder.ts'
import { testGraph, testModel } from './open-model.ts'
import { stripWeights } from './strip-weights.ts'
import { suggestOptions } from './suggest-options.ts'
import type { ExampleShapes } from './try-example.ts'

export interface TestOptions {
  /** Returns the folder of onnxruntime-web that contains its builds. */
  runtime: () => string
  signal: AbortSignal
  /** Called for every step that can take long. */
  onStep: (what: string) => void
}

/** Maximum bytes of weights of a model that is run. Of larger ones, only the graph is opened. */
const MAX_RUN_BYTES = 512 * 2 ** 20

/**
 * Opens and runs the graph. Resolves with the shapes of its inputs, which are empty if it did not
 * run. Rejects with `invalid_request` if the runtime or the inputs and outputs do not fit the model.
 */
export async function testPlan(
  root: ModelRoot,
  plan: Plan,
  options: TestOptions,
): Promise<ExampleShapes> {
  if (plan.entry.type !== 'predictor') return new Map()
  const { items = [], bindings = {} } =
    plan.implementations.find(({ device }) => device === 'wasm') ?? {}
  const [graph] = items.filter(({ type }) => type === 'onnx')
  if (!graph) return new Map()
  options.onStep('Testing it in the runtime')
  const { shapes, outputs, tensors } =
    sumBytes(items) > MAX_RUN_BYTES
      ? await openLarge(root, graph, plan, options)
      : await run(root, graph, items, plan, options)
  if (tensors) {
    checkBindings(plan.entry, bindings, tensors, outputs)
    const hasStates = plan.entry.states !== undefined
    plan.notes.push(...suggestOptions({ tensors, shapes, outputs }, bindings, hasStates))
  }
  const base = graph.path.slice(0, graph.path.lastIndexOf('/') + 1)
  await checkSteps(bindings, outputs, {
    graph: () => readInside(root, graph.path),
    read: (name) => readInside(root, base + name),
  })
  return shapes
}

interface Tested {
  shapes: ExampleShapes
  outputs: ExampleShapes
  /** Tensors of a model that was opened whole. */
  tensors?: ModelTensors
}

async function openLarge(
  root: ModelRoot,
  graph: Item,
  { notes }: Plan,
  { runtime, signal }: TestOptions,
): Promise<Tested> {
  const file = await openFolder(root).open(graph.path)
  const nothing: Tested = { shapes: new Map(), outputs: new Map() }
  try {
    const stripped = await stripWeights(file, MAX_RUN_BYTES, signal)
    if (!stripped) {
      notes.push('The model is too large to test here. Test it in a page.')
      return nothing
    }
    const options = { name: join(root.path, graph.path), runtime: runtime() }
    const failure = await testGraph(stripped, options)
    notes.push(
      failure === null
        ? 'The model is too large to run here, and the runtime opened only its graph. Test it in a page.'
        : `The model is too large to run here, and the runtime did not open its graph alone: ${failure} Test it in a page.`,
    )
    return nothing
  } finally {
    await file.close()
  }
}

async function run(
  root: ModelRoot,
  graph: Item,
  items: readonly Item[],
  { notes }: Plan,
  { runtime, signal }: TestOptions,
): Promise<Tested> {
  const base = graph.name.slice(0, graph.name.lastIndexOf('/') + 1)
  const data = items
    .filter(({ type }) => type === 'data')
    .map(({ name, path }) => ({ path: name.slice(base.length), file: path }))
  const { failure, ...ran } = await testModel({
    graph: graph.path,
    data,
    name: join(root.path, graph.path),
    runtime: runtime(),
    signal,
    read: (path) => readInside(root, path),
  })
  if (failure) {
    notes.push(
      `The example below fails, because the model ran on none of the inputs that were tried: ${failure} ` +
        'Give it the shapes and values that it expects.',
    )
  }
  return ran
}
