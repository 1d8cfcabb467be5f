/** Decoders of the layouts that exports have, on either device. */
import { requestGpu } from '../../src/device/gpu.ts'
import type { Decoder, Logits, Sequence } from '../../src/engine/decoder.ts'
import { withCaptureInputs } from '../../src/engine/onnx/capture-inputs.ts'
import { OnnxDecoder } from '../../src/engine/onnx/decoder/decoder.ts'
import { staysInHeap, staysOnDevice } from '../../src/engine/onnx/decoder/graph.ts'
import { readOperations } from '../../src/engine/onnx/graph-file.ts'
import { convertWeights } from '../../src/engine/onnx/convert-weights.ts'
import { withoutGguf } from '../../src/engine/onnx/gguf/convert.ts'
import type { GraphFiles } from '../../src/engine/onnx/model-files.ts'
import { loadRuntime, type Runtime, type Session } from '../../src/engine/onnx/runtime.ts'
import { runtimeFolder } from './tiny.ts'

export interface OpenedDecoder {
  decoder: Decoder
  /** Releases the sessions, and the runtime and its device where they were opened for it alone. */
  close(): Promise<void>
}

export interface OpenedRuntime {
  runtime: Runtime
  gpu: GPUDevice | undefined
  close(): void
}

export interface DecoderSource {
  device: 'wasm' | 'webgpu'
  /** Path of the graph under `test/models`, or a GGUF file. */
  model: string | Blob
  /** Path of the graph that takes the tokens, where it is another. */
  embed?: string
  contextWindow?: number
  firstPosition?: number
  heads?: number
  /** As of the runtime. */
  large?: boolean
  /** `true` to convert the weights to 8-bit integers, as a load on WASM does. */
  int8?: boolean
  /** `true` to capture the runs that recur, as a load on WebGPU does. */
  captures?: boolean
}

/** Opens a runtime; models that share it share the shaders that its device has compiled. */
export async function openRuntime(
  device: DecoderSource['device'],
  large?: boolean,
): Promise<OpenedRuntime> {
  const gpu = device === 'webgpu' ? (await requestGpu()).device : undefined
  const runtime = await loadRuntime({ device, folder: runtimeFolder(), gpu, large })
  const close = (): void => {
    runtime.release()
    gpu?.destroy()
  }
  return { runtime, gpu, close }
}

/** Opens the model, with weights beside it where there are some, in a runtime of its own or in `shared`. */
export async function openDecoder(
  source: DecoderSource,
  shared?: OpenedRuntime,
): Promise<OpenedDecoder> {
  const { device, model, embed, contextWindow = 512, firstPosition = 0 } = source
  const { heads, large, int8, captures = false } = source
  const within = shared ?? (await openRuntime(device, large))
  const { runtime, gpu } = within
  const read = typeof model === 'string' ? await readFiles(model) : { model, externalData: [] }
  const files = await withoutGguf(read, { contextTokens: contextWindow, device, signal: NEVER })
  const converted = int8 ? await convertWeights(files, 'int8', NEVER) : files
  const graph = captures ? await withCaptureInputs(converted) : converted
  if (!graph) throw new Error('The runs of this decoder cannot be captured.')
  const session = await open(runtime, graph, captures)
  const first = embed === undefined ? null : await open(runtime, await readFiles(embed))
  const operations = await readOperations(graph.model)
  const decoder = new OnnxDecoder(runtime, first ? { decoder: session, embed: first } : session, {
    contextWindow,
    firstPosition,
    gpu,
    operations,
    heads,
  })
  if (captures && !(await decoder.checkCaptures())) throw new Error('Captured runs differ.')
  const close = async (): Promise<void> => {
    await decoder.close()
    await session.release()
    await first?.release()
    if (!shared) within.close()
  }
  return { decoder, close }
}

const NEVER = new AbortController().signal

const open = (
  runtime: Runtime,
  { model, externalData }: GraphFiles,
  captures = false,
): Promise<Session> =>
  runtime.createSession(model, {
    externalData,
    captures,
    keepOnDevice: staysOnDevice,
    keepInHeap: staysInHeap,
  })

/** The graph at that path, with the weights beside it where there are some. */
export async function readFiles(path: string): Promise<GraphFiles> {
  const data = `${path.slice(path.lastIndexOf('/') + 1)}_data`
  const weights = await fetch(`/test/models/${path}_data`)
  const isThere = weights.ok && !weights.headers.get('content-type')?.startsWith('text/html')
  return {
    model: await file(path),
    externalData: isThere ? [{ path: data, data: await weights.blob() }] : [],
  }
}

async function file(path: string): Promise<Blob> {
  const response = await fetch(`/test/models/${path}`)
  if (!response.ok) throw new Error(`${path}: ${response.status}`)
  return response.blob()
}

/** Its only row, or that one; the scores are released. */
export async function takeRow(logits: Logits, row = 0): Promise<Float32Array> {
  const scores = (await logits.row(row)).slice()
  logits.release()
  return scores
}

const argmax = (scores: Float32Array): number => scores.indexOf(Math.max(...scores))

/** Takes a prompt in chunks, and gives the scores that follow it. */
export async function prefill(
  sequence: Sequence,
  prompt: readonly number[],
  chunk = 256,
): Promise<Float32Array> {
  let from = 0
  for (; prompt.length - from > chunk; from += chunk) {
    await sequence.extend(prompt.slice(from, from + chunk))
  }
  return takeRow(await sequence.forward(prompt.slice(from)))
}

/** Greedy tokens after a prompt. */
export async function greedy(
  sequence: Sequence,
  prompt: readonly number[],
  count: number,
  chunk?: number,
): Promise<number[]> {
  const tokens = [argmax(await prefill(sequence, prompt, chunk))]
  while (tokens.length < count) {
    tokens.push(argmax(await takeRow(await sequence.forward(tokens.slice(-1)))))
  }
  return tokens
}

/** Largest difference between two rows of scores. */
export const maxDifference = (one: Float32Array, other: Float32Array): number =>
  one.reduce((most, score, index) => Math.max(most, Math.abs(score - (other[index] ?? 0))), 0)
