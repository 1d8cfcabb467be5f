/** Loads downloaded weights into a decoder that is ready to run. */
import { InoriginError } from '../../error.ts'
import type { GpuVerdict } from '../../device/gpu-verdict.ts'
import type { Device } from '../../types/index.ts'
import type { DecoderLoadOptions, LoadedDecoder } from '../decoder-engine.ts'
import type { Decoder, IdleRun, Logits, Sequence } from '../decoder.ts'
import type { EngineSetup, Files } from '../engine.ts'
import { loadingCancelled, resourceMissing, retryOnLostGpu, settleWithTimeout } from '../failure.ts'
import { withCaptureInputs } from './capture-inputs.ts'
import { OnnxDecoder } from './decoder/decoder.ts'
import { staysInHeap, staysOnDevice } from './decoder/graph.ts'
import { convertWeights } from './convert-weights.ts'
import { withFullCaches } from './full-caches.ts'
import { withoutGguf } from './gguf/convert.ts'
import { getModelFiles, type GraphFiles, hasLargeWeights, type ModelFiles } from './model-files.ts'
import { readOperations } from './graph-file.ts'
import { withRopeSwitch } from './rope-switch.ts'
import { loadRuntime, type Runtime, type Session, type SessionOptions } from './runtime.ts'
import { openTrusted } from './selftest/open.ts'
import { openEncoder } from './vision/encoder.ts'
import type { ImageStore } from './vision/image-store.ts'

/** A runtime, and the GPU that passed the self-test with it. */
export interface StartedRuntime {
  runtime: Runtime
  /** Default: the runtime is on WASM. */
  gpu?: GPUDevice
  /** Result of the GPU self-test; `null` on `wasm`. */
  verdict: GpuVerdict | null
}

/** Options of {@link loadDecoder}. */
interface DecoderSetup extends DecoderLoadOptions {
  /** `true` to run the forward passes of a first answer once after loading. Default: `true`. */
  warm?: boolean
  /** Runtime that was started in advance for this load. Default: the load starts one. */
  started?: Promise<StartedRuntime>
  /** Images in prompts, if the model sees any. */
  images?: ImageStore | null
  /** `false` to capture no runs on WebGPU. Default: `true`, for decoders that allow it. */
  captures?: boolean
}

/**
 * Starts the runtime for weights that are `large` or not. On WebGPU, it opens a device and tests it, for seconds
 * unless there is a verdict. Rejects with `unavailable` if the runtime or the device cannot be used.
 */
export async function startRuntime(
  {
    device,
    runtime: folder,
    features,
    verdict,
    threads,
  }: Pick<EngineSetup, 'device' | 'runtime' | 'features' | 'verdict' | 'threads'>,
  large: boolean,
  signal: AbortSignal,
): Promise<StartedRuntime> {
  if (device === 'webgpu') return openTrusted({ folder, features, verdict }, signal)
  const runtime = await loadRuntime({ device, folder, large, threads, opensHeap: true })
  return { runtime, verdict: null }
}

/**
 * Loads the decoder. Rejects with `unavailable` if the model, the runtime or the device cannot be
 * used, and with `aborted` when the signal aborts.
 */
export async function loadDecoder(
  setup: DecoderSetup,
  weights: Files,
  signal: AbortSignal,
): Promise<LoadedDecoder> {
  const files = getModelFiles(weights)
  const options = { ...setup }
  const { onEncoderComparison } = setup
  // After a lost device, the image encoder is not compared again.
  if (onEncoderComparison)
    options.onEncoderComparison = (comparison) => {
      options.encoderComparison = comparison
      onEncoderComparison(comparison)
    }
  let opened = await open(options, files, signal).catch((thrown: unknown) => {
    // A GPU that was opened in advance may be lost when the weights arrive.
    if (!options.started || InoriginError.from(thrown).code !== 'device_lost') throw thrown
    return open({ ...options, started: undefined }, files, signal)
  })
  return {
    get decoder() {
      return opened.decoder
    },
    get verdict() {
      return opened.verdict
    },
    idleRuns: opened.idleRuns,
    async reopen(until) {
      const verdict = opened.verdict ?? undefined
      await opened.release()
      // Requests are already waiting, and they warm the decoder up themselves.
      const cold = { ...options, verdict, warm: false, started: undefined }
      opened = await retryOnLostGpu(() => open(cold, files, until), until)
      return opened.decoder
    },
    release: () => opened.release(),
  }
}

/** Options in which the sessions of a model differ. */
type SessionKind = Pick<SessionOptions, 'compact' | 'onCpu' | 'captures'>

async function open(
  options: DecoderSetup,
  files: ModelFiles,
  signal: AbortSignal,
): Promise<Omit<LoadedDecoder, 'reopen'>> {
  const { device, images, contextWindow, precision } = options
  const { decoder: given, embed, vision } = files
  const releases: (() => unknown)[] = []
  const release = async (): Promise<void> => {
    for (const each of releases.splice(0).toReversed()) await settleWithTimeout(each())
  }
  const assertNotAborted = (): void => {
    if (signal.aborted) throw loadingCancelled()
  }
  const large = hasLargeWeights(files)
  const session = (
    runtime: Runtime,
    graph: GraphFiles,
    more: Omit<SessionKind, 'compact'> = {},
  ): Promise<Session> => openSession(runtime, graph, { compact: large, ...more }, releases)

  // A runtime compiles, and a GPU is tested, while the weights are read.
  const started = options.started ?? startRuntime(options, large, signal)
  const releaseStarted = ({ runtime, gpu }: StartedRuntime): void => {
    runtime.release()
    gpu?.destroy()
  }
  releases.push(() => started.then(releaseStarted, () => undefined))
  started.catch(() => undefined)

  try {
    // It is made again after a lost device, so that the model holds no second copy of its weights.
    const stored = await withoutGguf(given, { contextTokens: contextWindow, device, signal })
    const form = precision === 'exact' ? 'float32' : 'int8'
    const converted = device === 'wasm' ? await convertWeights(stored, form, signal) : stored
    const full = { ...converted, model: await withFullCaches(converted.model) }
    const { files: main, maxShortLength } = await withRopeSwitch(full)
    // Reading waits for the disk while the runtime waits for its own files.
    const operations = readOperations(main.model)
    operations.catch(() => undefined)
    const capturing = device === 'webgpu' && !embed && options.captures !== false
    const capturable = capturing ? withCaptureInputs(main) : null
    capturable?.catch(() => undefined)
    assertNotAborted()
    const { runtime, gpu, verdict } = await started
    assertNotAborted()
    const embedding = embed && (await session(runtime, embed))
    if (images) {
      assertNotAborted()
      if (!vision || !embed) throw resourceMissing('onnx/vision_encoder.onnx')
      const createSession = (onCpu: boolean) => session(runtime, vision, { onCpu })
      images.setEncoder(await openEncoder(runtime, vision, createSession, options))
    }
    assertNotAborted()
    const openDecoder = async (graph: GraphFiles, captures: boolean): Promise<OpenedDecoder> => {
      const whole = await session(runtime, graph, { captures })
      const sessions = embedding ? { decoder: whole, embed: embedding } : whole
      const decoder = new OnnxDecoder(runtime, sessions, {
        ...options,
        gpu,
        maxShortLength,
        operations: await operations,
        images: images ?? undefined,
      })
      releases.push(() => decoder.close())
      const close = async (): Promise<void> => {
        await decoder.close()
        await whole.release()
      }
      return { decoder, close }
    }
    const { decoder } =
      (await openCapturing(await capturable, openDecoder)) ?? (await openDecoder(main, false))
    await decoder.checkChunks()
    assertNotAborted()
    performance.mark('inorigin:session')
    let idleRuns: IdleRun[] = []
    if (options.warm !== false) {
      options.onWarm?.()
      const longest = Math.min(contextWindow, decoder.maxShortLength ?? contextWindow)
      idleRuns = await warmUp(decoder, { device, contextWindow: longest }, assertNotAborted)
      performance.mark('inorigin:warm')
    }
    assertNotAborted()
    return { decoder, verdict, idleRuns, release }
  } catch (thrown) {
    await release()
    throw InoriginError.from(thrown)
  }
}

/** A decoder, and what frees it and its session before the others. */
interface OpenedDecoder {
  decoder: OnnxDecoder
  close(): Promise<void>
}

/**
 * Opens a decoder that captures its runs. Resolves with `null` if there is no graph for it, if the runtime refuses to
 * capture it, or if its logits would differ.
 */
async function openCapturing(
  graph: GraphFiles | null,
  openDecoder: (graph: GraphFiles, captures: boolean) => Promise<OpenedDecoder>,
): Promise<OpenedDecoder | null> {
  if (!graph) return null
  const opened = await openDecoder(graph, true).catch((thrown: unknown) => {
    if (CAPTURE_REFUSED.test(InoriginError.from(thrown).message)) return null
    throw thrown
  })
  if (!opened || (await opened.decoder.checkCaptures())) return opened
  await opened.close()
  return null
}

/** Message of the runtime for a graph of which it would compute a part on the CPU. */
const CAPTURE_REFUSED = /cannot use the graph capture feature/

/** Opens a session, which is released with the others unless it was before. */
async function openSession(
  runtime: Runtime,
  { model, externalData }: GraphFiles,
  options: SessionKind,
  releases: (() => unknown)[],
): Promise<Session> {
  const created = await runtime.createSession(model, {
    ...options,
    externalData,
    keepOnDevice: staysOnDevice,
    keepInHeap: staysInHeap,
  })
  let released: Promise<void> | undefined
  const releaseOnce = (): Promise<void> => (released ??= created.release())
  releases.push(releaseOnce)
  return { ...created, release: releaseOnce }
}

/**
 * Lengths in tokens of prompts for which a GPU compiles different shaders: a prompt in its template, and one token.
 * A prompt of 32 tokens or fewer has others, and one of four or fewer, as a draft has. Counted in decoders of
 * ONNX Runtime 1.30, prompts of 33 to 200 tokens have the same ones.
 */
const FIRST_LENGTHS = [64, 1]
const LATER_LENGTHS = [20, 3]

/** Sequences of the decode step of two answers at once. */
const BATCH = 2

/**
 * Warms a decoder up so that the first request does not wait: a device compiles shaders at the first
 * run of each shape, and a runtime allocates memory. It runs a prefill of each length and one decode
 * step, and selects candidates as the sampler does. `assertNotAborted` is called before each run and may
 * throw to stop the warm-up. Resolves with the runs that the first request does not need.
 */
async function warmUp(
  decoder: Decoder,
  { device, contextWindow }: { device: Device; contextWindow: number },
  assertNotAborted: () => void,
): Promise<IdleRun[]> {
  const run = (lengths: readonly number[], decodes: boolean): Promise<void> =>
    runOnce(decoder, { lengths, contextWindow, decodes: decodes && contextWindow > 1 })
  if (device === 'wasm') {
    await run([1], true)
    return []
  }
  for (const length of FIRST_LENGTHS) {
    assertNotAborted()
    await run([length], length === 1)
  }
  const single = Array<number>(Math.min(BATCH, decoder.maxBatchSize)).fill(1)
  return [...LATER_LENGTHS.map((length) => () => run([length], false)), () => run(single, true)]
}

/** Computes a prompt of each length and, if wanted, one decode step of all of them. */
async function runOnce(
  decoder: Decoder,
  {
    lengths,
    contextWindow,
    decodes,
  }: { lengths: readonly number[]; contextWindow: number; decodes: boolean },
): Promise<void> {
  const sequences: Sequence[] = []
  const selectCandidates = async (logits: Logits): Promise<void> => {
    const asks = Array.from({ length: logits.rows }, () => ({ count: 1, temperature: 1 }))
    await logits.top(asks)
    logits.release()
  }
  try {
    for (const length of lengths) {
      const sequence = decoder.open()
      sequences.push(sequence)
      const { maxChunkTokens = decoder.maxChunkTokens } = sequence
      const most = Math.min(maxChunkTokens, contextWindow - 2)
      const tokens = Array<number>(Math.max(1, Math.min(length, most))).fill(0)
      await selectCandidates(await sequence.forward(tokens))
    }
    if (decodes)
      await selectCandidates(
        await decoder.step(sequences.map((sequence) => ({ sequence, token: 0 }))),
      )
  } finally {
    for (const sequence of sequences) sequence.close()
  }
}
