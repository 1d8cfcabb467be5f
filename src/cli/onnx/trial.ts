/** Opens a model in the very runtime that browsers will use, on WebAssembly in Node. */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { refuse } from '../../host/draft/refuse.ts'

/** A graph, and its weights by the path that it refers to them by. */
export interface Trial {
  graph: string
  data: readonly { path: string; file: string }[]
  /** Name of the graph in messages. */
  name: string
  read: (file: string) => Promise<Uint8Array>
  /** The folder of onnxruntime-web that holds its builds. */
  runtime: string
}

/** Rejects with `invalid_request` that tells the runtime's own reason when it cannot. */
export async function tryModel({ graph, data, name, read, runtime }: Trial): Promise<void> {
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
      `The runtime cannot open ${name}: ${reasonOf(cause)}`,
      'Export the model again without what it names. If that is only missing on WebAssembly, add ' +
        'it with --device webgpu.',
      cause,
    )
  }
}

/** Without the paths and functions of the runtime's own sources. */
function reasonOf(thrown: unknown): string {
  const text = thrown instanceof Error ? thrown.message : String(thrown)
  const reason = text
    .replace(/^.*ERROR_MESSAGE: */s, '')
    .replace(/^\S*onnxruntime\/\S+:\d+ .*?\) ?(const )?/s, '')
  return reason.trim().replace(/\.?$/, '.')
}
