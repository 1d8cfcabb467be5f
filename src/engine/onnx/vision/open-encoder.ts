/** Opens the image encoder of a model on the device that computes it correctly. */
import type { DecoderLoadOptions } from '../../decoder-engine.ts'
import type { GraphFiles } from '../model-files.ts'
import type { Runtime, Session } from '../runtime.ts'
import { createCheckedEncoder, type OpenEncoder } from './checked-encoder.ts'
import { createEncoder, type RunEncoder } from './encoder.ts'

/**
 * Largest size in bytes of an encoder that is opened on the CPU as well, for the time of the
 * comparison. For larger ones, the self-test of the GPU must do.
 */
const MAX_COMPARED_BYTES = 256 * 2 ** 20

interface EncoderFiles {
  runtime: Runtime
  graph: GraphFiles
  /** Creates a session. It is released with the model, unless it is released before. */
  createSession(onCpu: boolean): Promise<Session>
}

/** Opens the encoder. On a GPU, it is compared with the CPU once, unless the result is known. */
export async function openEncoder(
  { runtime, graph, createSession }: EncoderFiles,
  { encoderComparison, onEncoderComparison }: DecoderLoadOptions,
): Promise<RunEncoder> {
  const open = async (onCpu: boolean): Promise<OpenEncoder> => {
    const session = await createSession(onCpu)
    return { run: createEncoder(runtime, session), release: () => session.release() }
  }
  if (runtime.device === 'wasm') return (await open(false)).run
  if (encoderComparison?.agrees === false) return (await open(true)).run
  const onGpu = await open(false)
  const bytes = graph.externalData.reduce((sum, { data }) => sum + data.size, graph.model.size)
  if (encoderComparison || !onEncoderComparison || bytes > MAX_COMPARED_BYTES) return onGpu.run
  const onComparison = onEncoderComparison
  return createCheckedEncoder({ onGpu, openOnCpu: () => open(true), onComparison })
}
