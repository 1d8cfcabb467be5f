/** Runs a decoder over one conversation, keeping keys and values where they were computed. */
import type { Tensor } from 'onnxruntime-web'
import { modelUnusable } from '../failure.ts'
import { type CacheSlot, type Graph, readGraph } from './graph.ts'
import type { Runtime, Session } from '../runtime.ts'

export interface Decoder {
  /** Tokens to give at once, so that an abort is not kept waiting and scores fit in memory. */
  readonly chunk: number
  /** Begins a conversation of nothing. */
  open(): Sequence
}

/** One conversation. Calls come one after the other; after a failure only `close` is of use. */
export interface Sequence {
  /** Tokens taken so far. */
  readonly length: number
  /** Takes tokens that something follows. */
  extend(tokens: readonly number[]): Promise<void>
  /** Takes tokens and gives the scores of the one to follow. */
  predict(tokens: readonly number[]): Promise<Float32Array>
  close(): void
}

/** `contextWindow` is the most tokens of a conversation. */
export function createDecoder(
  runtime: Runtime,
  session: Session,
  { contextWindow, firstPosition }: { contextWindow: number; firstPosition: number },
): Decoder {
  const { Tensor: OrtTensor } = runtime.ort
  const graph = readGraph(session)
  // Filled once: a run is given the beginning of each, however long the conversation is.
  const ones = new BigInt64Array(contextWindow).fill(1n)
  const positions = BigInt64Array.from(
    { length: graph.positions ? contextWindow : 0 },
    (_, index) => BigInt(index + firstPosition),
  )
  const cacheOutputs = graph.caches.map(({ output }) => output)

  const open = (): Sequence => {
    let caches: Record<string, Tensor> = {}
    let length = 0
    for (const slot of graph.caches) caches[slot.input] = empty(OrtTensor, slot)

    const run = async (
      tokens: readonly number[],
      outputs: readonly string[],
    ): Promise<Tensor | undefined> => {
      const end = length + tokens.length
      const feeds = { ...caches, input_ids: int64(OrtTensor, BigInt64Array.from(tokens, BigInt)) }
      Object.assign(feeds, sideInputs(end))
      const results = await session.run(feeds, outputs)
      const next: Record<string, Tensor> = {}
      for (const { input, output } of graph.caches) next[input] = results[output] as Tensor
      const old = caches
      caches = next
      length = end
      for (const tensor of Object.values(old)) tensor.dispose()
      return results['logits']
    }

    const sideInputs = (end: number): Record<string, Tensor> => {
      const inputs: Record<string, Tensor> = {}
      if (graph.attentionMask) inputs['attention_mask'] = int64(OrtTensor, ones.subarray(0, end))
      if (graph.positions) {
        inputs['position_ids'] = positionTensor(
          OrtTensor,
          positions.subarray(length, end),
          graph.positions,
        )
      }
      if (graph.logitsToKeep) {
        inputs['num_logits_to_keep'] = new OrtTensor(
          'int64',
          BigInt64Array.of(1n),
          graph.logitsToKeep,
        )
      }
      return inputs
    }

    const extend = async (tokens: readonly number[]): Promise<void> => {
      await run(tokens, cacheOutputs)
    }

    const predict = async (tokens: readonly number[]): Promise<Float32Array> => {
      if (!graph.logitsToKeep && tokens.length > 1) {
        // Scores of every position would have to be copied out to use those of the last.
        await extend(tokens.slice(0, -1))
        return predict(tokens.slice(-1))
      }
      const logits = await run(tokens, [...cacheOutputs, 'logits'])
      if (!logits) throw modelUnusable('it gave no scores.')
      return lastRow(logits)
    }

    const close = (): void => {
      for (const tensor of Object.values(caches)) tensor.dispose()
      caches = {}
    }
    return {
      get length() {
        return length
      },
      extend,
      predict,
      close,
    }
  }
  return { chunk: graph.logitsToKeep ? 256 : 64, open }
}

type TensorConstructor = Runtime['ort']['Tensor']

function int64(OrtTensor: TensorConstructor, values: BigInt64Array): Tensor {
  return new OrtTensor('int64', values, [1, values.length])
}

function positionTensor(
  OrtTensor: TensorConstructor,
  values: BigInt64Array,
  { copies }: NonNullable<Graph['positions']>,
): Tensor {
  if (copies === 0) return int64(OrtTensor, values)
  const repeated = new BigInt64Array(copies * values.length)
  for (let copy = 0; copy < copies; copy += 1) repeated.set(values, copy * values.length)
  return new OrtTensor('int64', repeated, [copies, 1, values.length])
}

function empty(OrtTensor: TensorConstructor, { input, type, dims }: CacheSlot): Tensor {
  const size = dims.reduce((product, dimension) => product * dimension, 1)
  if (type === 'float32') return new OrtTensor(type, new Float32Array(size), dims)
  if (type === 'float16') return new OrtTensor(type, new Uint16Array(size), dims)
  throw modelUnusable(`its cache ${input} has a type that is not supported, ${type}.`)
}

/** The scores of the last position as 32-bit floats. */
function lastRow(logits: Tensor): Float32Array {
  const size = logits.dims.at(-1) ?? 0
  const { data } = logits
  if (data instanceof Float32Array) return data.subarray(data.length - size)
  if (data instanceof Uint16Array)
    return Float32Array.from(data.subarray(data.length - size), halfToNumber)
  // Browsers that have Float16Array get one.
  return Float32Array.from((data as unknown as Float32Array).subarray(data.length - size))
}

function halfToNumber(half: number): number {
  const sign = half & 0x8000 ? -1 : 1
  const exponent = (half >> 10) & 0x1f
  const fraction = half & 0x3ff
  if (exponent === 0) return sign * fraction * 2 ** -24
  if (exponent === 0x1f) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15)
}
