/**
 * Converts GGUF files to graphs of ONNX Runtime. The graph is built from the head of the file. Its
 * weights are then converted in the order of the file, about one MiB at a time.
 */
import type { Device } from '../../../types/index.ts'
import { readFloats } from './convert-matrix.ts'
import type { ByteSource, Gguf } from '../../gguf/header.ts'
import { isGguf, readGgufParts } from '../../gguf/parts.ts'
import type { GraphFiles } from '../model-files.ts'
import { buildDecoder, type RopeFactors } from './decoder.ts'
import { GraphBuilder } from './graph-builder.ts'
import { readShape } from './shape.ts'
import { WrittenFile } from '../written-file.ts'
import { Weights } from './weights.ts'

/** Options of {@link planGguf}. */
export interface ConversionOptions {
  /**
   * Greatest number of tokens of a sequence, which tables of positions are made for. Default: the
   * number that the model was trained for.
   */
  contextTokens?: number | undefined
  /** Device that the graph will run on. Default: `wasm`. */
  device?: Device
  signal: AbortSignal
}

/** A graph whose weights have not been converted yet. */
export interface PlannedGraph {
  model: Blob
  /** Path of the weights, by which the graph refers to them, and their size in bytes. */
  path: string
  bytes: number
  /** Yields the weights, from the first byte to the last. */
  write: () => AsyncIterable<Uint8Array<ArrayBuffer>>
}

/**
 * Resolves with the graph of a file whose head was read from the same source. Rejects with
 * `model_unusable` if its architecture is not supported or its tensors do not fit.
 */
export async function planGguf(
  source: ByteSource,
  gguf: Gguf,
  options: ConversionOptions,
): Promise<PlannedGraph> {
  const { device = 'wasm', signal } = options
  const shape = readShape(gguf)
  const graph = new GraphBuilder()
  const weights = new Weights(graph, gguf.tensors, device)
  const contextTokens = Math.min(options.contextTokens ?? Infinity, shape.contextTokens)
  const reading = { source, signal }
  const factorsOf = async (name: string): Promise<Float32Array | null> => {
    if (!weights.has(name)) return null
    const tensor = weights.get(name, [shape.ropeSize / 2])
    const part = { tensor, from: 0, count: 1, columns: shape.ropeSize / 2 }
    for await (const bytes of readFloats(reading, part)) return new Float32Array(bytes.buffer)
    return null
  }
  const [all, long, short] = await Promise.all(
    ['rope_freqs', 'rope_factors_long', 'rope_factors_short'].map((name) =>
      factorsOf(`${name}.weight`),
    ),
  )
  const factors: RopeFactors = { all: all ?? null, long: long && short ? { long, short } : null }
  buildDecoder({ graph, weights, shape, factors, contextTokens })
  const { path, bytes } = weights.place()
  return { model: graph.build(), path, bytes, write: () => weights.write(reading) }
}

/**
 * Resolves with the graph of a GGUF file, or with other files as they are. Weights stay blocks of
 * integers. Rejects with `model_unusable` if the file is wrong or not supported, and with `aborted`
 * when the signal aborts.
 */
export async function withoutGguf(
  files: GraphFiles,
  options: ConversionOptions,
): Promise<GraphFiles> {
  if (!(await isGguf(files.model))) return files
  const { source, gguf } = await readGgufParts([
    files.model,
    ...files.externalData.map(({ data }) => data),
  ])
  const { model, path, write } = await planGguf(source, gguf, options)
  const weights = new WrittenFile()
  for await (const piece of write()) weights.write(piece)
  return { model, externalData: [{ path, data: weights.close() }] }
}
