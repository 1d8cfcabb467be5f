/** Runs the graph of a predictor once, and decodes what the runs of one call gave. */
import type { Tensor } from 'onnxruntime-web'
import { gpuRejected } from '../engine/failure.ts'
import type { Ort } from '../engine/onnx/tensor.ts'
import { InoriginError } from '../error.ts'
import type { Device } from '../types/index.ts'
import { ARRAYS, countElements, isElementType } from '../values/elements.ts'
import { throwInvalidInput } from '../values/input-errors.ts'
import type { BoundOutput, BoundSignature } from './bind.ts'
import type { GpuCheck } from './gpu-check.ts'
import { encodeImages } from './image-tensor.ts'
import type { ParsedInput } from './parse-inputs.ts'
import type { RunFacts } from './steps.ts'
import { decodeOutput, encodeMask, encodeTensor, readTokenRows } from './tensor-codec.ts'
import { fromTensor, type RawTensor } from './tensor.ts'
import { encodeTokens } from './text.ts'

/** Tensors of the outputs of one run by name, and what their steps need to know of it. */
export interface GraphRun {
  outputs: ReadonlyMap<string, RawTensor>
  facts: RunFacts
}

/**
 * Returns the values by name of the output. Windowed runs give tensors with a first dimension for
 * the windows, or arrays of other values; states have the value after the last run. A session
 * carries its states, so `hidesStates` leaves them out.
 */
export function decodeRuns(
  { outputs, states }: BoundSignature,
  runs: readonly GraphRun[],
  isWindowed: boolean,
  hidesStates: boolean,
): Record<string, unknown> {
  const decoded = outputs.flatMap((output) => {
    const { name } = output.parameter
    const isState = states.some((state) => state.output === name)
    if (isState && hidesStates) return []
    const tensors = runs.flatMap((run) => run.outputs.get(name) ?? [])
    const last = tensors.at(-1)
    const facts = runs.at(-1)?.facts
    if (isWindowed && !isState) return [[name, joinWindows(output, tensors, facts)]]
    return [[name, last && decodeOutput(output.parameter, last, output.spec, facts)]]
  })
  return Object.fromEntries(decoded)
}

function joinWindows(
  { parameter, type, spec }: BoundOutput,
  tensors: readonly RawTensor[],
  facts: RunFacts | undefined,
) {
  const [first] = tensors
  const isSame = tensors.every(({ shape }) => shape.join() === first?.shape.join())
  if (!isElementType(parameter.type) || type === 'string' || spec.steps || !isSame)
    return tensors.map((tensor) => decodeOutput(parameter, tensor, spec, facts))
  const shape = [tensors.length, ...(first?.shape ?? [])]
  const data = new ARRAYS[type](countElements(shape))
  let at = 0
  for (const tensor of tensors) {
    data.set(tensor.data as never, at)
    at += tensor.data.length
  }
  return decodeOutput(parameter, { type, data, shape: shape.length > 1 ? shape : [0, 0] }, spec)
}

/**
 * Runs the graph with `run`. Resolves with the tensors of the declared outputs by name, and with the
 * device that computed them. Rejects with `invalid_request` if the model rejects the inputs, with
 * `aborted`, and with `gpu_untrusted` if `run` finds that the GPU computes wrong numbers.
 */
export async function runGraph(
  ort: Ort,
  run: GpuCheck['run'],
  { inputs, outputs, settings }: BoundSignature,
  checked: ReadonlyMap<string, ParsedInput>,
  signal: AbortSignal,
): Promise<GraphRun & { device: Device }> {
  const others = outputs.flatMap(({ spec }) => spec.others ?? [])
  const wanted = [...new Set([...outputs.map(({ tensor }) => tensor), ...others])]
  const tensors: Tensor[] = []
  const facts: RunFacts = { settings: readSettings(settings, checked) }
  try {
    const feeds: Record<string, Tensor> = {}
    for (const { parameter, tensor, spec } of inputs) {
      const value = checked.get(parameter.name)
      if (!value) continue
      const path = `inputs.${parameter.name}`
      const encoded = new Map<string, RawTensor>()
      if (spec.text) {
        const read = readTokenRows(value, spec.text, path, checked)
        if (spec.shape?.[0] === 1 && read.rows.length > 1)
          throwInvalidInput(path, 'must be one text: the model takes one at a time.')
        facts.texts = { ...read, tokenizer: spec.text.tokenizer }
        const tokens = encodeTokens(read.rows, tensor, spec.type, spec.text, path)
        for (const [name, one] of tokens) encoded.set(name, one)
      } else if (spec.image && value.form === 'image') {
        const read = await encodeImages(value.sources, spec.type, spec.shape, spec.image, path)
        facts.images = read.images
        encoded.set(tensor, read.tensor)
        if (spec.mask) encoded.set(spec.mask.name, encodeMask(spec.mask, read.tensor.shape))
      } else encoded.set(tensor, await encodeTensor(value, spec, path))
      for (const [name, { type, data, shape }] of encoded) {
        feeds[name] = new ort.Tensor(type as 'float32', data as Float32Array, shape)
        tensors.push(feeds[name])
      }
    }
    assertNotAborted(signal)
    const { results, device } = await run(feeds, wanted).catch(rethrowRunError)
    tensors.push(...Object.values(results))
    const read = (tensor: string): RawTensor => {
      const result = results[tensor]
      if (!result) throw new InoriginError('internal', `The model returned no ${tensor}.`)
      return fromTensor(result)
    }
    const named = outputs.map(({ parameter, tensor }) => [parameter.name, read(tensor)] as const)
    if (others.length > 0) facts.others = new Map(others.map((name) => [name, read(name)]))
    return { outputs: new Map(named), facts, device }
  } finally {
    for (const tensor of tensors) tensor.dispose()
  }
}

/** Returns the settings that are given. */
const readSettings = (
  names: readonly string[],
  checked: ReadonlyMap<string, ParsedInput>,
): ReadonlyMap<string, number | string> =>
  new Map(
    names.flatMap((name) => {
      const value = checked.get(name)
      const [first] = value?.form === 'elements' ? value.elements.data : []
      if (first === undefined) return []
      return [[name, typeof first === 'string' ? first : Number(first)] as const]
    }),
  )

/** Rethrows a runtime error, as `invalid_request` if the model rejected the inputs. */
function rethrowRunError(thrown: unknown): never {
  const error = InoriginError.from(thrown)
  if (error.kind !== 'internal') throw error
  const rejection = findInputMismatch(error.message)
  if (rejection !== null)
    throwInvalidInput('inputs', `the model rejected them: ${rejection}`, thrown)
  const shortage = findGpuShortage(error.message)
  throw shortage === null ? error : gpuRejected(shortage, thrown)
}

/** Throws `aborted` if the signal has aborted. */
export function assertNotAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw cancelledError(signal)
}

export const cancelledError = (signal: AbortSignal) =>
  new InoriginError('aborted', 'The prediction was canceled.', { cause: signal.reason })

// Tells inputs that a model rejects from a runtime that fails, by the runtime's message.

/** Messages of the runtime's check of inputs, and its code for arguments that a kernel rejects. */
const REJECTED_INPUT = /invalid dimensions|invalid.argument|ERROR_CODE: 2\b/i
/** Error code of the runtime that includes, among others, lengths that do not match. */
const GENERIC_FAILURE = /ERROR_CODE: 1\b/i
const LENGTH_WORDS = /broadcast|reshape|dimension|shape/i
/** Path of the runtime's sources for GPUs. */
const GPU_SOURCE = /providers\/webgpu\//i

/** Returns the runtime's message about rejected inputs; `null` for any other message. */
export function findInputMismatch(message: string): string | null {
  const reason = withoutSourceLocation(message)
  const isAboutLengths = GENERIC_FAILURE.test(message) && LENGTH_WORDS.test(reason)
  return REJECTED_INPUT.test(message) || isAboutLengths ? reason : null
}

/** Returns the message about a GPU that lacks what the model needs, such as buffers, or `null`. */
export const findGpuShortage = (message: string): string | null =>
  GPU_SOURCE.test(message) && findInputMismatch(message) === null
    ? withoutSourceLocation(message)
    : null

/** Removes source locations, because function names there could match the patterns above. */
const withoutSourceLocation = (message: string) =>
  message
    .replace(/^.*?ERROR_MESSAGE:\s*/s, '')
    .replace(/^.*?Status Message:\s*/s, '')
    .replace(/^.*?was false\.\s*/s, '')
    .trim()
