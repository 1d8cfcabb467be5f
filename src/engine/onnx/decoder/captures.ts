/**
 * Captures the runs of a decoder that recur: decode steps of one sequence and of several, and the verification of
 * drafts. The runtime records the commands of such a run and submits them again, with the buffers that they were
 * recorded with. So a captured run reads its inputs from buffers that stay, which are written before, and the KV
 * caches and the logits stay where they are.
 */
import type { Tensor } from 'onnxruntime-web'
import { STORAGE_USAGE } from '../../../device/gpu.ts'
import { bytesOf, type Ort } from '../tensor.ts'
import type { KvBatch } from './kv-pool.ts'

/** A run that the runtime records or repeats. */
export interface CapturedRun {
  /** Number of the recording. */
  id: number
  inputs: Record<string, Tensor>
  /** Tensor for the logits. Its buffer is free for another run once it is disposed of. */
  logits: Tensor
  /** Forgets the recording, which may not be whole after a run that failed. */
  forget(): void
}

/** Inputs of a run, and what it is for. */
export interface CaptureRequest {
  batch: KvBatch
  /** Inputs besides the caches, in plain memory. */
  inputs: Readonly<Record<string, Tensor>>
  /** Number of tokens of each sequence. */
  tokens: number
  /** Number of last tokens of each sequence whose logits are needed. */
  keep: number
}

/**
 * Numbers of tokens of a sequence in runs that recur: one, and those of drafts of 3 and 7 tokens. Others come as
 * parts of prompts, and hardly twice for the same KV cache.
 */
const CAPTURED_TOKENS: ReadonlySet<number> = new Set([1, 4, 8])

/**
 * Largest number of recordings of a decoder, a guess. The runtime keeps them, and the memory for what is computed between
 * the inputs and the outputs, until the session is released. A recording belongs to KV tensors, and a pool keeps
 * those that it has, so that new ones are rare. Counted in the shape of SmolLM2-135M with 4 bits and KV caches of 512
 * tokens, a decode step takes 0.09 MB, and one of four sequences or of four tokens 0.35 MB.
 */
const MAX_RECORDINGS = 256

/** Largest number of runs of a shape whose logits are needed at once: those of a step, and those of one ahead. */
const MAX_BUFFERS_PER_SHAPE = 2

/** Buffers of the runs of one shape. Runs of a shape differ in their KV tensors only. */
interface RunShape {
  inputs: Record<string, Tensor>
  logits: GPUBuffer
  dims: number[]
  /** `true` while the logits of the last run are needed. */
  isInUse: boolean
}

/** Recordings of a decoder's runs. */
export class Captures {
  readonly #ort: Pick<Ort, 'Tensor'>
  readonly #gpu: GPUDevice
  readonly #logits: Pick<Tensor, 'type'> & { vocabulary: number }
  readonly #shapes = new Map<string, RunShape[]>()
  /** Numbers of the recordings with these KV tensors and the buffers of a run. */
  readonly #recordings = new WeakMap<Tensor, Map<RunShape, number>>()
  #count = 0

  constructor(
    ort: Pick<Ort, 'Tensor'>,
    gpu: GPUDevice,
    logits: Pick<Tensor, 'type'> & { vocabulary: number },
  ) {
    this.#ort = ort
    this.#gpu = gpu
    this.#logits = logits
  }

  /**
   * Returns the run to capture or repeat, and writes its inputs. Returns `null` for a run that does not recur, while
   * the logits of two others of its shape are needed, and if there are too many recordings.
   */
  prepare({ batch, inputs, tokens, keep }: CaptureRequest): CapturedRun | null {
    const [first] = batch.tensors
    // A chunk of a prompt needs the logits of its last token at most.
    if (!first || !CAPTURED_TOKENS.has(tokens) || keep !== tokens) return null
    const shape = this.#freeShape(inputs, batch.rows, keep)
    if (!shape) return null
    const recordings = this.#recordings.get(first) ?? new Map<RunShape, number>()
    const known = recordings.get(shape)
    if (known === undefined && this.#count >= MAX_RECORDINGS) return null
    const id = known ?? this.#count
    if (known === undefined) this.#count += 1
    this.#recordings.set(first, recordings.set(shape, id))
    for (const [name, { data }] of Object.entries(inputs)) {
      const target = shape.inputs[name]
      if (target) this.#gpu.queue.writeBuffer(target.gpuBuffer, 0, data as Int32Array<ArrayBuffer>)
    }
    shape.isInUse = true
    const free = (): void => {
      shape.isInUse = false
    }
    const logits = this.#tensorOf(shape.logits, shape.dims, free)
    const forget = (): void => {
      recordings.delete(shape)
      logits.dispose()
    }
    return { id, inputs: shape.inputs, logits, forget }
  }

  /** Frees the buffers. */
  close(): void {
    for (const { inputs, logits } of [...this.#shapes.values()].flat()) {
      logits.destroy()
      for (const input of Object.values(inputs)) input.dispose()
    }
    this.#shapes.clear()
  }

  /** Returns buffers whose logits nobody needs; `undefined` if there are none and no more may be made. */
  #freeShape(inputs: CaptureRequest['inputs'], rows: number, keep: number): RunShape | undefined {
    const key = `${rows} x ${keep}`
    const shapes = this.#shapes.get(key) ?? []
    const free = shapes.find(({ isInUse }) => !isInUse)
    if (free || shapes.length >= MAX_BUFFERS_PER_SHAPE) return free
    const created = this.#createShape(inputs, [rows, keep])
    this.#shapes.set(key, [...shapes, created])
    return created
  }

  #createShape(inputs: CaptureRequest['inputs'], rows: readonly number[]): RunShape {
    const dims = [...rows, this.#logits.vocabulary]
    const owned = Object.entries(inputs).map(([name, { type, dims: size }]) => {
      const buffer = this.#createBuffer(bytesOf({ type, dims: size }))
      const options = { dataType: type as Tensor.GpuBufferDataTypes, dims: size }
      const dispose = (): void => buffer.destroy()
      return [name, this.#ort.Tensor.fromGpuBuffer(buffer, { ...options, dispose })] as const
    })
    const logits = this.#createBuffer(bytesOf({ type: this.#logits.type, dims }))
    return { inputs: Object.fromEntries(owned), logits, dims, isInUse: false }
  }

  #createBuffer(size: number): GPUBuffer {
    return this.#gpu.createBuffer({ size: Math.ceil(size / 4) * 4, usage: STORAGE_USAGE })
  }

  #tensorOf(buffer: GPUBuffer, dims: number[], dispose: () => void): Tensor {
    const dataType = this.#logits.type as Tensor.GpuBufferDataTypes
    return this.#ort.Tensor.fromGpuBuffer(buffer, { dataType, dims, dispose })
  }
}
