/** Opens a model in the runtime that browsers use, on WebAssembly in Node. */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { refuse } from '../../draft/refuse.ts'
import { InoriginError } from '../../error.ts'

/** Graph and its external weights, each with the path that the graph refers to. */
export interface ModelFiles {
  graph: string
  data: readonly { path: string; file: string }[]
  /** Name of the graph in messages. */
  name: string
  read: (file: string) => Promise<Uint8Array>
  /** Folder of onnxruntime-web that contains its builds. */
  runtime: string
}

/** Opens the model once. Rejects with `invalid_request` and the runtime's reason if that fails. */
export async function assertModelOpens({
  graph,
  data,
  name,
  read,
  runtime,
}: ModelFiles): Promise<void> {
  const build = pathToFileURL(join(runtime, 'ort.node.min.mjs')).href
  const ort = (await import(build)) as typeof import('onnxruntime-web')
  ort.env.logLevel = 'fatal'
  ort.env.wasm.numThreads = 1
  const bytes = await read(graph)
  const externalData = await Promise.all(
    data.map(async ({ path, file }) => ({ path, data: await read(file) })),
  )
  try {
    const session = await ort.InferenceSession.create(bytes, {
      executionProviders: ['wasm'],
      externalData,
      logSeverityLevel: 4,
    })
    await session.release()
  } catch (cause) {
    throw refuse(
      `The runtime cannot open ${name}: ${toReason(cause)}`,
      'Export the model again without the part that this names. If only WebAssembly lacks it, ' +
        'add the model with --device webgpu.',
      cause,
    )
  }
}

/** Returns the runtime's error message without the paths and functions of its sources. */
function toReason(thrown: unknown): string {
  const reason = InoriginError.from(thrown)
    .message.replace(/^.*ERROR_MESSAGE: */s, '')
    .replace(/^\S*onnxruntime\/\S+:\d+ .*?\) ?(const )?/s, '')
  return reason.trim().replace(/\.?$/, '.')
}
