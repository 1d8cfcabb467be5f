/** From downloaded weights to a decoder that is ready. */
import { InoriginError } from '../../error.ts'
import { requestGpu } from '../../device/gpu.ts'
import type { EngineSetup, Files } from '../engine.ts'
import type { Decoder } from './decoder/contract.ts'
import { createDecoder } from './decoder/decoder.ts'
import { modelUnusable } from './failure.ts'
import { staysOnDevice } from './decoder/graph.ts'
import { readOperations } from './decoder/operations.ts'
import { loadRuntime } from './runtime.ts'

export interface Loaded {
  decoder: Decoder
  /** Frees the model and the device. */
  release(): Promise<void>
}

export interface LoadOptions extends Pick<EngineSetup, 'device' | 'runtime'> {
  contextWindow: number
  firstPosition: number
}

export async function loadDecoder(
  options: LoadOptions,
  weights: Files,
  signal: AbortSignal,
): Promise<Loaded> {
  const { device, runtime: folder } = options
  const { model, externalData } = findModel(weights)
  const releases: (() => unknown)[] = []
  const release = async (): Promise<void> => {
    for (const each of releases.splice(0).toReversed()) await each()
  }
  const check = (): void => {
    if (signal.aborted) throw new InoriginError('aborted', 'Loading was cancelled.')
  }

  try {
    check()
    const gpu = device === 'webgpu' ? (await requestGpu()).device : undefined
    if (gpu) releases.push(() => gpu.destroy())
    const runtime = await loadRuntime({ device, folder, gpu })
    releases.push(() => runtime.release())
    check()
    const session = await runtime.createSession(model, {
      externalData,
      keepOnDevice: staysOnDevice,
    })
    releases.push(() => session.release())
    check()
    const operations = await readOperations(model)
    const decoder = createDecoder(runtime, session, { ...options, gpu, operations })
    releases.push(() => decoder.close())
    await warmUp(decoder, device === 'webgpu' ? SHADER_SHAPES : [1], options.contextWindow)
    check()
    return { decoder, release }
  } catch (thrown) {
    await release()
    throw InoriginError.from(thrown)
  }
}

/** The graph, and the files beside it that hold its weights, named as the graph names them. */
function findModel(weights: Files): { model: Blob; externalData: { path: string; data: Blob }[] } {
  const names = [...weights.keys()]
  const graphs = names.filter((name) => name.endsWith('.onnx'))
  const name = graphs.length === 1 ? graphs[0] : graphs.find((each) => each === 'onnx/model.onnx')
  const model = name === undefined ? undefined : weights.get(name)
  if (name === undefined || !model) {
    throw modelUnusable('its catalog entry has no resource named onnx/model.onnx.')
  }
  const folder = name.slice(0, name.lastIndexOf('/') + 1)
  const externalData = [...weights]
    .filter(([each]) => each.startsWith(folder) && !each.endsWith('.onnx'))
    .map(([each, data]) => ({ path: each.slice(folder.length), data }))
  return { model, externalData }
}

/** Lengths of a prompt for which the kernels differ, and a token that follows it. */
const SHADER_SHAPES = [40, 20, 1]

/** A device compiles its shaders at the first run of a shape, and a runtime arranges its memory. */
async function warmUp(
  decoder: Decoder,
  lengths: readonly number[],
  contextWindow: number,
): Promise<void> {
  for (const length of lengths) {
    const sequence = decoder.open()
    try {
      const tokens = Array<number>(Math.min(length, contextWindow - 1)).fill(0)
      const scores = await sequence.predict(tokens)
      scores.release()
      if (length === 1) (await sequence.predict([0])).release()
    } finally {
      sequence.close()
    }
  }
}
