/** Tests a model in the runtime that browsers use, on WebAssembly in Node. */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { refuse } from '../../draft/refuse.ts'
import { InoriginError } from '../../error.ts'
import type { ModelTensors } from './check-bindings.ts'
import { tryExample, type ExampleShapes } from './try-example.ts'

/** Graph and its external weights, each with the path that the graph refers to. */
export interface ModelFiles {
  graph: string
  data: readonly { path: string; file: string }[]
  /** Name of the graph in messages. */
  name: string
  read: (file: string) => Promise<Uint8Array>
  /** Folder of onnxruntime-web that contains its builds. */
  runtime: string
  signal: AbortSignal
}

export interface TestedModel {
  /** Shapes of inputs with which the model ran. Empty if it did not run. */
  shapes: ExampleShapes
  /** Shapes of the outputs of that run. */
  outputs: ExampleShapes
  /** The runtime's reason if the model did not run on the inputs that were tried. */
  failure?: string
  tensors: ModelTensors
}

/**
 * Opens the model and runs it on the inputs of the example code. Rejects with `invalid_request` and
 * the runtime's reason if the model cannot be opened.
 */
export async function testModel({
  graph,
  data,
  name,
  read,
  runtime,
  signal,
}: ModelFiles): Promise<TestedModel> {
  const ort = await loadRuntime(runtime)
  const bytes = await read(graph)
  const externalData = await Promise.all(
    data.map(async ({ path, file }) => ({ path, data: await read(file) })),
  )
  const options = { executionProviders: ['wasm'], externalData, logSeverityLevel: 4 } as const
  const session = await ort.InferenceSession.create(bytes, options).catch((cause: unknown) => {
    throw refuseModel(name, cause)
  })
  try {
    const { failure, ...ran } = await tryExample(session, ort.Tensor, signal)
    const tensors = { inputs: session.inputMetadata, outputs: session.outputMetadata }
    return { ...ran, tensors, ...(failure !== undefined && { failure: toReason(failure) }) }
  } finally {
    await session.release()
  }
}

/** Messages of the runtime about operators that it does not have. */
const MISSING_OPERATOR =
  /No Op registered|is not a registered function|Could not find an implementation/

/**
 * Opens a graph whose weights are inputs, since the model is too large to open. Resolves with the
 * runtime's reason if it opens only the whole model; otherwise `null`. Rejects with
 * `invalid_request` that names an operator which the runtime lacks.
 */
export async function testGraph(
  graph: Uint8Array,
  { name, runtime }: Pick<ModelFiles, 'name' | 'runtime'>,
): Promise<string | null> {
  const ort = await loadRuntime(runtime)
  try {
    const session = await ort.InferenceSession.create(graph, {
      executionProviders: ['wasm'],
      graphOptimizationLevel: 'disabled',
      logSeverityLevel: 4,
    })
    await session.release()
    return null
  } catch (cause) {
    if (MISSING_OPERATOR.test(InoriginError.from(cause).message)) throw refuseModel(name, cause)
    return toReason(cause)
  }
}

async function loadRuntime(folder: string): Promise<typeof import('onnxruntime-web')> {
  const build = pathToFileURL(join(folder, 'ort.node.min.mjs')).href
  const ort = (await import(build)) as typeof import('onnxruntime-web')
  ort.env.logLevel = 'fatal'
  ort.env.wasm.numThreads = 1
  return ort
}

const refuseModel = (name: string, cause: unknown): InoriginError =>
  refuse(
    `The runtime cannot open ${name}: ${toReason(cause)}`,
    'Export the model again without the part that this names. If only WebAssembly lacks it, ' +
      'add the model with --device webgpu.',
    cause,
  )

/** Returns the runtime's error message without the paths and functions of its sources. */
function toReason(thrown: unknown): string {
  const reason = InoriginError.from(thrown)
    .message.replace(/^.*ERROR_MESSAGE: */s, '')
    .replace(/^\S*onnxruntime\/\S+:\d+ .*?\) ?(const )?/s, '')
  return reason.trim().replace(/\.?$/, '.')
}
