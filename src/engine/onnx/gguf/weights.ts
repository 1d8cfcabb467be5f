/**
 * Turns the tensors of a GGUF file into weights of a graph, in a form that the runtime computes with.
 * A quantized matrix becomes blocks of 4-bit or 8-bit integers with a scale each, and any other one
 * 32-bit floats. Both have the file's own values. Integers of `MatMulNBits` have no offset, so the
 * offsets of a type that has them are multiplied by the sums of the input's blocks, and added. The
 * runtime has its product with a transposed matrix (`FusedMatMul`) on the CPU only, so on WebGPU the
 * matrix is transposed beforehand: the offsets here, and floats by the runtime.
 */
import type { Device } from '../../../types/index.ts'
import { BLOCK_LAYOUTS, isBlockType } from '../../gguf/blocks.ts'
import type { TensorInfo } from '../../gguf/header.ts'
import { modelUnusable } from '../../failure.ts'
import { bytesOf, product } from '../tensor.ts'
import {
  type MatrixPart,
  type OffsetOrder,
  readBlocks,
  readFloats,
  type Reading,
} from './convert-matrix.ts'
import type { GraphBuilder, GraphType } from './graph-builder.ts'

/** A matrix, by its tensor and the rows that are used. */
export interface MatrixUse {
  tensor: string
  /** Length of a row. */
  columns: number
  /** Number of rows of the tensor. */
  rows: number
  /** First row that is used, and the number of them. Default: all rows. */
  part?: { from: number; count: number }
  /** As in `MatrixPart`. */
  interleaved?: number | undefined
}

/** Options of {@link Weights.floats}. */
interface FloatsOptions {
  /** Dimensions of the constant. Default: those in the file. */
  dims?: readonly number[]
  /** Numbers that are used. Default: all of them. */
  part?: MatrixUse['part']
  /** As in `MatrixPart`, with single numbers as rows. */
  interleaved?: number | undefined
}

/** Path of the weights, to which the graph refers. */
const WEIGHTS_PATH = '.gguf-weights'

/** Bytes of weights that are written together: those of one tensor, or computed ones. */
interface Entry {
  /** Place in the GGUF file, by which entries are ordered. */
  order: number
  /** Size in bytes; it grows by the offsets that the graph uses. */
  length: number
  /** Orders in which the graph uses the offsets of blocks. */
  offsets: OffsetOrder[]
  write: (reading: Reading) => AsyncIterable<Uint8Array<ArrayBuffer>>
}

/** A constant of the graph, which is a part of an entry. */
interface WeightConstant {
  type: GraphType
  dims: readonly number[]
  entry: Entry
  /** Offset in the entry. */
  at: number
}

/** Weights of a graph that is being built. */
export class Weights {
  readonly #graph: GraphBuilder
  readonly #tensors: ReadonlyMap<string, TensorInfo>
  readonly #device: Device
  readonly #entries = new Map<string, Entry>()
  readonly #constants = new Map<string, WeightConstant>()
  /** Sums of blocks, by input and block size. */
  readonly #sums = new Map<string, string>()

  /** `device` is where the graph will run. */
  constructor(graph: GraphBuilder, tensors: readonly TensorInfo[], device: Device) {
    this.#graph = graph
    this.#device = device
    this.#tensors = new Map(tensors.map((tensor) => [tensor.name, tensor]))
  }

  /** Returns `true` if the file has the tensor. */
  has(name: string): boolean {
    return this.#tensors.has(name)
  }

  /** Returns the size of the first dimension of a tensor; 0 if there is none of that name. */
  sizeOf(name: string): number {
    return this.#tensors.get(name)?.shape[0] ?? 0
  }

  /** Returns the tensor of that name. Throws `model_unusable` if there is none of that shape. */
  get(name: string, shape: readonly number[]): TensorInfo {
    const tensor = this.#tensors.get(name)
    if (!tensor) throw modelUnusable(`the GGUF file has no tensor \`${name}\`.`)
    if (shape.join() === tensor.shape.join()) return tensor
    const why = `has the shape ${tensor.shape.join(' x ')} instead of ${shape.join(' x ')}`
    throw modelUnusable(`the tensor \`${name}\` of the GGUF file ${why}.`)
  }

  /** Returns a constant with the numbers of a tensor in 32 bits. */
  floats(
    name: string,
    shape: readonly number[],
    { dims = shape, part, interleaved }: FloatsOptions = {},
  ): string {
    const tensor = this.get(name, shape)
    const count = part?.count ?? product(dims)
    const matrix = { tensor, from: part?.from ?? 0, count, columns: 1, interleaved }
    // Numbers of a type with blocks are only divisible into blocks as a whole.
    const whole = isBlockType(tensor.type) ? { ...matrix, count: 1, columns: count } : matrix
    const write = (reading: Reading) => readFloats(reading, whole)
    const key = `${name}/${matrix.from}`
    const entry = this.#entry(key, { order: tensor.offset, length: count * 4, write })
    return this.#constant(key, { type: 'float32', dims: part ? [count] : dims, entry, at: 0 })
  }

  /** Returns a constant of numbers that `compute` returns when they are written. */
  computed(
    name: string,
    dims: readonly number[],
    compute: () => Float32Array<ArrayBuffer>,
  ): string {
    const entry = this.#entry(name, {
      order: Infinity,
      length: product(dims) * 4,
      async *write() {
        yield new Uint8Array(compute().buffer)
      },
    })
    return this.#constant(name, { type: 'float32', dims, entry, at: 0 })
  }

  /** Adds nodes that multiply the rows of `input` by a matrix. Returns their output. */
  multiply(input: string, use: MatrixUse): string {
    const matrix = this.#matrix(use)
    if (matrix.form === 'floats') return this.#multiplyFloats(input, matrix.floats())
    const { bits, blockSize, count } = matrix
    const { columns } = use
    const attributes = { K: columns, N: count, bits, block_size: blockSize }
    const inputs = [input, matrix.values(), matrix.scales()]
    const multiplied = this.#graph.node('MatMulNBits', inputs, { attributes, contrib: true })
    if (!matrix.offsets) return multiplied
    const sums = this.#blockSums(input, columns / blockSize, blockSize)
    const added =
      this.#device === 'webgpu'
        ? this.#graph.node('MatMul', [sums, matrix.offsets('by block')])
        : this.#multiplyFloats(sums, matrix.offsets('by row'))
    return this.#graph.node('Add', [multiplied, added])
  }

  /** Adds nodes that look up rows of a matrix. Returns their output. */
  lookUp(ids: string, use: MatrixUse): string {
    const matrix = this.#matrix(use)
    if (matrix.form === 'floats') return this.#graph.node('Gather', [matrix.floats(), ids])
    const { bits, blockSize } = matrix
    // The blocks stay apart, so that this operator and `MatMulNBits` share the integers in memory.
    const attributes = { bits, block_size: blockSize, quantize_axis: 2, gather_axis: 0 }
    const inputs = [matrix.values(), ids, matrix.scalesApart()]
    const rows = this.#graph.node('GatherBlockQuantized', inputs, { attributes, contrib: true })
    if (!matrix.offsets) return this.#reshape(rows, [0, 0, use.columns])
    const offsets = this.#graph.node('Gather', [matrix.offsets('by row'), ids])
    const added = this.#reshape(offsets, [0, 0, use.columns / blockSize, 1])
    return this.#reshape(this.#graph.node('Add', [rows, added]), [0, 0, use.columns])
  }

  /** Adds the constants to the graph. Returns the path and the size in bytes of their file. */
  place(): { path: string; bytes: number } {
    const offsets = new Map<Entry, number>()
    let bytes = 0
    for (const entry of this.#sorted()) {
      offsets.set(entry, bytes)
      bytes += entry.length
    }
    for (const [name, { type, dims, entry, at }] of this.#constants) {
      const place = { offset: (offsets.get(entry) ?? 0) + at, length: bytesOf({ type, dims }) }
      this.#graph.weight(name, type, dims, WEIGHTS_PATH, place)
    }
    return { path: WEIGHTS_PATH, bytes }
  }

  /** Yields the bytes of the file of constants. The tensors are read in the order of the file. */
  async *write(reading: Reading): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    for (const entry of this.#sorted()) yield* entry.write(reading)
  }

  #sorted(): Entry[] {
    return [...this.#entries.values()].toSorted((one, other) =>
      one.order === other.order ? 0 : one.order - other.order,
    )
  }

  #reshape(input: string, shape: readonly number[]): string {
    return this.#graph.node('Reshape', [input, this.#graph.integers(shape)])
  }

  #multiplyFloats(input: string, matrix: string): string {
    if (this.#device === 'webgpu') {
      const attributes = { perm: { integers: [1, 0] } }
      const transposed = this.#graph.node('Transpose', [matrix], { attributes })
      return this.#graph.node('MatMul', [input, transposed])
    }
    const options = { attributes: { transB: 1 }, contrib: true }
    return this.#graph.node('FusedMatMul', [input, matrix], options)
  }

  /** Returns the sums of the blocks of an input, which several products share. */
  #blockSums(input: string, blocks: number, blockSize: number): string {
    const key = `${input}/${blockSize}`
    const known = this.#sums.get(key)
    if (known !== undefined) return known
    const apart = this.#reshape(input, [0, 0, blocks, blockSize])
    const attributes = { keepdims: 0 }
    const sums = this.#graph.node('ReduceSum', [apart, this.#graph.integers([3])], { attributes })
    this.#sums.set(key, sums)
    return sums
  }

  /** Returns functions that add constants of a matrix, and return their names. */
  #matrix({ tensor: name, columns, rows, part, interleaved }: MatrixUse) {
    const tensor = this.get(name, [columns, rows])
    const { from, count } = part ?? { from: 0, count: rows }
    const matrix: MatrixPart = { tensor, from, count, columns, interleaved }
    const key = part ? `${name}/${from}` : name
    const { type } = tensor
    const order = tensor.offset + from
    if (!isBlockType(type)) {
      const write = (reading: Reading) => readFloats(reading, matrix)
      const entry = this.#entry(key, { order, length: count * columns * 4, write })
      const floats = (): string =>
        this.#constant(key, { type: 'float32', dims: [count, columns], entry, at: 0 })
      return { form: 'floats', floats } as const
    }
    const { bits, blockSize, hasOffsets } = BLOCK_LAYOUTS[type]
    const blocks = columns / blockSize
    const valueBytes = (count * columns * bits) / 8
    const scaleBytes = count * blocks * 4
    const entry = this.#entry(key, {
      order,
      length: valueBytes + scaleBytes,
      write: (reading) => readBlocks(reading, matrix, type, entry.offsets),
    })
    const addOffsets = (by: OffsetOrder): string => {
      if (!entry.offsets.includes(by)) {
        entry.offsets.push(by)
        entry.length += scaleBytes
      }
      const at = valueBytes + scaleBytes * (1 + entry.offsets.indexOf(by))
      const dims = by === 'by row' ? [count, blocks] : [blocks, count]
      return this.#constant(`${key}/offsets ${by}`, { type: 'float32', dims, entry, at })
    }
    const add = (kind: string, dims: readonly number[], at: number) => (): string => {
      const elements = at === 0 ? 'uint8' : 'float32'
      return this.#constant(`${key}/${kind}`, { type: elements, dims, entry, at })
    }
    return {
      form: 'blocks',
      bits,
      blockSize,
      count,
      values: add('values', [count, blocks, (blockSize * bits) / 8], 0),
      scales: add('scales', [count, blocks], valueBytes),
      // The same bytes, as another operator wants them.
      scalesApart: add('scales_apart', [count, blocks, 1], valueBytes),
      offsets: hasOffsets ? addOffsets : null,
    } as const
  }

  #entry(key: string, created: Omit<Entry, 'offsets'>): Entry {
    const known = this.#entries.get(key)
    if (known) return known
    const entry = { ...created, offsets: [] }
    this.#entries.set(key, entry)
    return entry
  }

  #constant(name: string, constant: WeightConstant): string {
    this.#constants.set(name, constant)
    return name
  }
}
