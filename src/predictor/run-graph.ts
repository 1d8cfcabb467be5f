/** Runs the graph of a model once, on checked inputs. */
import type { Tensor } from 'onnxruntime-web'
import { gpuRejected } from '../engine/failure.ts'
import type { Ort } from '../engine/onnx/ort.ts'
import { InoriginError } from '../error.ts'
import type { Device } from '../types/index.ts'
import type { ElementData } from '../values/elements.ts'
import { throwInvalidInput } from '../values/input-errors.ts'
import type { BoundSignature } from './bound.ts'
import type { GpuCheck } from './gpu-check.ts'
import type { ParsedInput } from './parse-inputs.ts'
import { findGpuShortage, findInputMismatch } from './runtime-errors.ts'
import { fromTensor, type RawTensor } from './tensor.ts'
import { encodeInput } from './tensor-codec.ts'

/** Tensors of the declared outputs by name, and the device that computed them. */
export interface GraphOutputs {
  outputs: Map<string, RawTensor>
  device: Device
}

/**
 * Runs the graph with `run`. Rejects with `invalid_request` if the model rejects the inputs, with
 * `aborted`, and with `gpu_untrusted` if `run` finds that the GPU computes wrong numbers.
 */
export async function runGraph(
  ort: Ort,
  run: GpuCheck['run'],
  { inputs, outputs }: BoundSignature,
  checked: ReadonlyMap<string, ParsedInput>,
  signal: AbortSignal,
): Promise<GraphOutputs> {
  const wanted = outputs.map(({ tensor }) => tensor)
  const tensors: Tensor[] = []
  try {
    const feeds: Record<string, Tensor> = {}
    for (const { parameter, tensor, spec } of inputs) {
      const value = checked.get(parameter.name)
      if (!value) continue
      const path = `inputs.${parameter.name}`
      for (const [name, raw] of await encodeInput(value, tensor, spec, path)) {
        tensors.push((feeds[name] = toTensor(ort, raw)))
      }
    }
    assertNotAborted(signal)
    const { results, device } = await run(feeds, wanted).catch(rethrowRunError)
    tensors.push(...Object.values(results))
    const named = outputs.map(({ parameter, tensor }) => {
      const result = results[tensor]
      if (!result) throw new InoriginError('internal', `The model returned no ${tensor}.`)
      return [parameter.name, fromTensor(result)] as const
    })
    return { outputs: new Map(named), device }
  } finally {
    for (const tensor of tensors) tensor.dispose()
  }
}

function toTensor(ort: Ort, { type, data, shape }: RawTensor): Tensor {
  return type === 'string'
    ? new ort.Tensor(type, data as string[], shape)
    : new ort.Tensor(type, data as Exclude<ElementData, string[]>, shape)
}

/** Rethrows a runtime error, as `invalid_request` if the model rejected the inputs. */
function rethrowRunError(thrown: unknown): never {
  const error = InoriginError.from(thrown)
  const rejection = error.kind === 'internal' ? findInputMismatch(error.message) : null
  if (rejection !== null)
    throwInvalidInput('inputs', `the model rejected them: ${rejection}`, thrown)
  const shortage = error.kind === 'internal' ? findGpuShortage(error.message) : null
  throw shortage === null ? error : gpuRejected(shortage, thrown)
}

/** Throws `aborted` if the signal has aborted. */
export function assertNotAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw cancelledError(signal)
}

/** Returns the error of a canceled prediction. */
export function cancelledError(signal: AbortSignal): InoriginError {
  return new InoriginError('aborted', 'The prediction was canceled.', { cause: signal.reason })
}
