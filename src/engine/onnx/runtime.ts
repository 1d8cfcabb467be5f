/**
 * Loads onnxruntime-web, once per thread and device. Language models and predictors both run their
 * ONNX graphs through this module.
 */
import type { InferenceSession, Tensor } from 'onnxruntime-web'
import { guessThreads, hasSharedMemory } from '../../device/capabilities.ts'
import { InoriginError, messageOf } from '../../error.ts'
import type { Device } from '../../types/index.ts'
import { RUNTIME_PARTS } from '../../values/asset-cache.ts'
import { deviceFailure, modelUnusable, oneOf, outOfMemory, runtimeMessage } from '../failure.ts'
import { readOperations, separateWeights } from './graph-file.ts'
import { withPlainLookUps } from './plain-look-ups.ts'
import { MAX_WHOLE_FILE_BYTES } from './protobuf.ts'
import { Heap, HeapSession, openModule } from './heap.ts'
import type { Ort } from './tensor.ts'
import { GpuWatch } from './watch.ts'

interface RuntimeOptions {
  device: Device
  /** URL of the folder with the WebAssembly files, with a trailing slash. */
  folder: string
  /** Device to run on; required on `webgpu`. The caller destroys it. */
  gpu?: GPUDevice
  /**
   * `true` to load, on `wasm`, the build that reads weights one by one. It needs less memory and
   * starts slower. Default: `false`.
   */
  large?: boolean
  /**
   * `true` to open the memory for sessions with `keepInHeap` at once, beside the import of the
   * runtime. Default: `false`, which opens it for the first such session.
   */
  opensHeap?: boolean
  /** Number of threads of a page that can have several. Default: a guess. */
  threads?: number
}

export interface SessionOptions {
  /** External weights by the path that the model refers to, such as `model.onnx_data`. */
  externalData?: readonly { path: string; data: Blob }[]
  /**
   * `true` to keep weights as they are in the file, which saves memory and slows some runs down.
   * Default: `false`.
   */
  compact?: boolean
  /** Predicate of the outputs that stay in GPU memory on `webgpu` until disposal. Default: none. */
  keepOnDevice?: (output: string) => boolean
  /**
   * Predicate of the outputs that stay in the runtime's memory on `wasm` until disposal. If it is
   * given, inputs may be there too. Sessions of a runtime share that memory.
   */
  keepInHeap?: (output: string) => boolean
  /**
   * `true` to let runs be captured, on `webgpu`. The runtime refuses a graph of which it would compute a part on the
   * CPU. Default: `false`.
   */
  captures?: boolean
  /**
   * `true` to run on the CPU although the runtime is one for `webgpu`, with its WebAssembly. Default:
   * `false`.
   */
  onCpu?: boolean
}

/** A graph ready to run. Runs of one runtime are queued, because two at once hang the thread. */
export interface Session {
  readonly inputs: readonly InferenceSession.ValueMetadata[]
  readonly outputs: readonly InferenceSession.ValueMetadata[]
  /** Memory where tensors may stay between runs; present with `keepInHeap`. */
  readonly heap?: Heap
  /**
   * Runs the graph. Rejects with `unavailable` if the device failed. `fetches` default to all. With `captures`, the
   * first run with a number `capture` is recorded and computed twice, and each later one with that number submits
   * the same commands again. It reads and writes the buffers of the first run, whichever are given.
   */
  run(
    feeds: Record<string, Tensor>,
    fetches?: InferenceSession.FetchesType,
    capture?: number,
  ): Promise<Record<string, Tensor>>
  release(): Promise<void>
}

/**
 * Returns `true` if WebAssembly can suspend for a promise here. Otherwise the larger and slower
 * asyncify build is needed.
 */
const hasSuspension = (): boolean => 'Suspending' in WebAssembly

const importForGpu = (): Promise<Ort> =>
  hasSuspension() ? import('onnxruntime-web/jspi') : import('onnxruntime-web/webgpu')

/**
 * Imports the build that reads weights one by one, which is one of those for WebGPU. Resolves with
 * `null` where WebAssembly cannot suspend, and in an app that was set up without WebGPU.
 */
const importStreaming = (): Promise<Ort | null> =>
  hasSuspension() ? import('onnxruntime-web/jspi').catch(() => null) : Promise.resolve(null)

/** Loads a build of the runtime. Rejects with `unavailable` if it cannot be imported. */
export async function loadRuntime(options: RuntimeOptions): Promise<Runtime> {
  const { device, folder, gpu, large = false, opensHeap = false } = options
  const guess = guessThreads(navigator.hardwareConcurrency)
  const threads = hasSharedMemory() ? (options.threads ?? guess) : 1
  if (device === 'webgpu' && !gpu)
    throw new InoriginError('internal', 'The webgpu runtime needs a GPUDevice.')
  const streaming = large && device === 'wasm' ? await importStreaming() : null
  const streams = streaming !== null
  const open = () => openModule(folder, streams, threads)
  const opened = opensHeap ? open() : null
  // The session that needs the module reports its failure.
  opened?.catch(() => undefined)
  const ort = await importOrt(device, folder, streaming, threads)
  const openHeap = async () => new Heap(ort, await (opened ?? open()), streams)
  return new Runtime(ort, options, { openHeap, isForGpu: streams || device === 'webgpu' })
}

interface Build {
  openHeap: () => Promise<Heap>
  /** `true` for a build for WebGPU, which lacks some kernels for the CPU. */
  isForGpu: boolean
}

/** A build of the runtime on one device. */
export class Runtime {
  readonly ort: Ort
  readonly device: Device
  readonly #folder: string
  readonly #gpu: GPUDevice | undefined
  readonly #watch: GpuWatch | null
  readonly #queue: DeviceQueue
  readonly #build: Build
  /** Memory of all sessions in a heap, which is opened for the first one. */
  #heap: Heap | null = null

  constructor(ort: Ort, { device, folder, gpu }: RuntimeOptions, build: Build) {
    this.ort = ort
    this.device = device
    this.#folder = folder
    this.#gpu = gpu
    this.#build = build
    this.#watch = gpu ? new GpuWatch(gpu) : null
    this.#queue = new DeviceQueue(this.#watch)
  }

  /** Loads a model. Rejects with `unavailable` if the device fails or the model cannot be used. */
  async createSession(model: Blob, requested: SessionOptions = {}): Promise<Session> {
    const isInMemory = this.device === 'wasm' || requested.onCpu
    const given = { model, externalData: [...(requested.externalData ?? [])] }
    const lacksLookUps = isInMemory && this.#build.isForGpu
    const files = lacksLookUps ? await withPlainLookUps(given) : given
    const isWhole = files.model.size <= MAX_WHOLE_FILE_BYTES
    const separated = isWhole
      ? { graph: files.model, externalData: [] }
      : await separateWeights(files.model)
    const { graph } = separated
    const externalData = [...files.externalData, ...separated.externalData].map(
      ({ path, data }) => ({ path, data: toChunkedFile(data) }),
    )
    const options = { ...requested, externalData }
    const weight = sum(externalData.map(({ data }) => data.size))
    const create = () => this.#create(graph, options)
    const created = await this.#queue.run(
      () => (this.#watch ? this.#watch.scope(create) : create()),
      (thrown) =>
        RUNTIME_MISSING.test(messageOf(thrown))
          ? runtimeMissing(this.#folder, thrown)
          : modelUnusable(runtimeMessage(thrown), thrown),
    )
    return {
      inputs: created.inputMetadata,
      outputs: created.outputMetadata,
      ...(options.keepInHeap && created instanceof HeapSession && { heap: created.heap }),
      run: (feeds, fetches, capture) =>
        this.#queue.run(
          () => {
            if (isInMemory) assertFitsInMemory(weight, feeds)
            const wanted = fetches ?? created.outputMetadata.map(({ name }) => name)
            return options.captures && !(created instanceof HeapSession)
              ? created.run(feeds, wanted, captureOptions(capture))
              : created.run(feeds, wanted)
          },
          (thrown) => InoriginError.from(thrown),
        ),
      release: () => this.#queue.exclusive(() => created.release()),
    }
  }

  /** Stops watching the device. The callers that created sessions release them. */
  release(): void {
    this.#watch?.stop()
  }

  /** Creates a session of the runtime, or one in the heap. */
  async #create(graph: Blob, options: SessionOptions): Promise<InferenceSession | HeapSession> {
    const { externalData = [], keepInHeap, onCpu } = options
    if (this.device === 'wasm' && (keepInHeap || (await hasGroupedAttention(graph)))) {
      // The start of the runtime occupies the thread, so the file is read before.
      const opening = [this.#heap ?? this.#build.openHeap(), graph.arrayBuffer()] as const
      const [heap, bytes] = await Promise.all(opening)
      this.#heap = heap
      const keeps = keepInHeap ?? (() => false)
      const settings = { externalData, config: configOf(options), keeps }
      const created = await HeapSession.open(heap, bytes, settings)
      if (keepInHeap || hasOnlySupportedTensors(created)) return created
      await created.release()
    }
    const bytes = new Uint8Array(await graph.arrayBuffer())
    const device = onCpu ? 'wasm' : this.device
    return this.ort.InferenceSession.create(bytes, sessionOptions(device, this.#gpu, options))
  }
}

/** Imports the build for a device, or uses `streaming`, and sets it up. */
async function importOrt(
  device: Device,
  folder: string,
  streaming: Ort | null,
  threads: number,
): Promise<Ort> {
  const isSplit = device === 'webgpu' && !hasSuspension()
  const [ort, binary] = await Promise.all([
    device === 'webgpu' ? importForGpu() : (streaming ?? import('onnxruntime-web/wasm')),
    isSplit ? fetchSplitRuntime(folder) : undefined,
  ]).catch((cause: unknown) => {
    throw runtimeMissing(folder, cause)
  })
  ort.env.logLevel = 'error'
  ort.env.wasm.wasmPaths = folder
  if (binary) ort.env.wasm.wasmBinary = binary
  ort.env.wasm.numThreads = threads
  return ort
}

/**
 * Returns `true` for a graph that needs the heap for speed: only there is the flash attention of
 * `GroupQueryAttention` off (docs/decisions/0009-no-flash-attention-on-wasm.md).
 */
const hasGroupedAttention = async (graph: Blob): Promise<boolean> =>
  (await readOperations(graph)).some(({ kind }) => kind === 'GroupQueryAttention')

/** Returns `true` unless there is an input or output, such as text, that no heap tensor can hold. */
const hasOnlySupportedTensors = ({ inputMetadata, outputMetadata }: HeapSession): boolean =>
  [...inputMetadata, ...outputMetadata].every(({ isTensor }) => isTensor)

/** Levels of messages for the console, which sessions and runs write from that one on. */
const [ERROR, FATAL] = [3, 4] as const

function sessionOptions(
  device: Device,
  gpu: GPUDevice | undefined,
  { externalData, compact, keepOnDevice, captures }: SessionOptions,
): InferenceSession.SessionOptions {
  // A graph that cannot be captured is run in the plain way, so its error does not belong in the console.
  const logSeverityLevel = captures ? FATAL : ERROR
  const shared = { externalData, extra: configOf({ compact }), logSeverityLevel } as const
  if (device === 'wasm') return { ...shared, executionProviders: ['wasm'] }
  const options: InferenceSession.SessionOptions = {
    ...shared,
    // With validation enabled, the runtime would swallow the errors that the GPU reports.
    executionProviders: [{ name: 'webgpu', device: gpu, validationMode: 'disabled' }],
    preferredOutputLocation: keepOnDevice && locations(keepOnDevice),
  }
  return captures ? withCaptures(options) : options
}

/**
 * Returns the options of a session whose runs can be captured. With `enableGraphCapture`, the JavaScript of
 * onnxruntime-web 1.30 would bind the tensors of the first run to all others, so that there could be no prompts
 * beside captured steps. Its first read of the option is that for the device, so only that one gets `true`.
 */
function withCaptures(options: InferenceSession.SessionOptions): InferenceSession.SessionOptions {
  let isFirstRead = true
  return Object.defineProperty(options, 'enableGraphCapture', {
    enumerable: true,
    get() {
      const captures = isFirstRead
      isFirstRead = false
      return captures
    },
  })
}

/** Returns the options of a run that is captured with that number, or not captured if there is none. */
const captureOptions = (capture = -1): InferenceSession.RunOptions => ({
  extra: { gpu_graph_id: String(capture) },
  logSeverityLevel: FATAL,
})

const configOf = ({ compact }: SessionOptions): Record<string, string> =>
  compact ? { 'session.disable_prepacking': '1' } : {}

/**
 * Returns a lazy record of output locations. The session reads it while it is created, before the
 * names of its outputs are known.
 */
function locations(keep: (output: string) => boolean): Record<string, Tensor.DataLocation> {
  return new Proxy({}, { get: (_, output) => (keep(String(output)) ? 'gpu-buffer' : 'cpu') })
}

/** Bytes that a 32-bit WebAssembly memory can hold beside the runtime itself. */
const MAX_WASM_TENSOR_BYTES = 4 * 2 ** 30 - 256 * 2 ** 20

/**
 * Throws `unavailable` if the inputs do not fit in memory beside the weights. The runtime would
 * write them over the start of its own memory and compute wrong numbers.
 */
function assertFitsInMemory(weight: number, feeds: Record<string, Tensor>): void {
  const views = Object.values(feeds).map(({ data }) => data)
  const inputs = sum(views.map((data) => (ArrayBuffer.isView(data) ? data.byteLength : 0)))
  if (weight + inputs > MAX_WASM_TENSOR_BYTES) throw outOfMemory(`${weight} + ${inputs} bytes`)
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0)

/** Queues the work on one device: two runs of a runtime at once hang its thread. */
class DeviceQueue {
  /** `null` if the device is no GPU. */
  readonly #watch: GpuWatch | null
  #last: Promise<unknown> = Promise.resolve()
  #crash: InoriginError | null = null

  constructor(watch: GpuWatch | null) {
    this.#watch = watch
  }

  /** Runs one task at a time. Rejects with the device's failure if there is one before or after. */
  run<T>(task: () => Promise<T>, explain: (thrown: unknown) => InoriginError): Promise<T> {
    return this.exclusive(async () => {
      this.#assertWorks()
      let result
      try {
        result = await task()
      } catch (thrown) {
        // A failed run rejects before the browser reports the GPU error that caused it.
        await this.#watch?.settle()
        const error = this.#watch?.failure ?? deviceFailure(thrown) ?? explain(thrown)
        if (error.code === 'runtime_crashed') this.#crash = error
        throw error
      }
      this.#assertWorks()
      return result
    })
  }

  /** Runs one task at a time, whatever the state of the device. A failure does not stop the next. */
  exclusive<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#last.then(task, task)
    this.#last = result.catch(() => undefined)
    return result
  }

  #assertWorks(): void {
    const failure = this.#watch?.failure ?? this.#crash
    if (failure) throw failure
  }
}

/** Size in bytes of one read of a file. */
const READ_CHUNK_BYTES = 2 * 2 ** 20

/**
 * Returns the same file with streams that read piece by piece. The runtime prefers reads into its
 * own buffer (BYOB). On a busy machine, Chromium 156 sometimes never settles such a read. These
 * streams support only default reads. Each piece is valid until the next read, which frees it.
 */
export const toChunkedFile = (file: Blob): Blob =>
  file instanceof ChunkedFile ? file : new ChunkedFile(file)

/** A file with such streams. It is a class because the runtime checks `instanceof Blob`. */
class ChunkedFile extends Blob {
  readonly #file: Blob

  constructor(file: Blob) {
    super()
    this.#file = file
  }

  override get size(): number {
    return this.#file.size
  }

  override slice(start?: number, end?: number, type?: string): Blob {
    return new ChunkedFile(this.#file.slice(start, end, type))
  }

  override arrayBuffer(): Promise<ArrayBuffer> {
    return this.#file.arrayBuffer()
  }

  override stream(): ReadableStream<Uint8Array<ArrayBuffer>> {
    const file = this.#file
    let at = 0
    let read: ArrayBuffer | null = null
    return new ReadableStream(
      {
        async pull(controller) {
          free(read)
          const chunk = file.slice(at, at + READ_CHUNK_BYTES)
          at += chunk.size
          read = await chunk.arrayBuffer()
          if (chunk.size > 0) controller.enqueue(new Uint8Array(read))
          else controller.close()
        },
      },
      { highWaterMark: 0 },
    )
  }
}

/**
 * Frees the memory of a piece at once, by a transfer to a channel that is then closed. The garbage
 * collector would let the pieces grow to a third of the file.
 */
function free(chunk: ArrayBuffer | null): void {
  if (!chunk) return
  const { port1, port2 } = new MessageChannel()
  port1.postMessage(null, [chunk])
  port1.close()
  port2.close()
}

/** Messages of browsers and of the runtime when one of the runtime's files is missing. */
const RUNTIME_MISSING = oneOf(
  'failed to load \\S+\\.wasm',
  'no available backend',
  'both async and sync fetching of the wasm failed',
  'failed to fetch dynamically imported module',
  'error loading dynamically imported module',
  'importing a module script failed',
)

/** Returns the error for a runtime that could not be loaded from the folder. */
function runtimeMissing(folder: string, cause: unknown): InoriginError {
  return new InoriginError(
    'unavailable',
    `Failed to load ONNX Runtime from ${folder}. Run \`npx inorigin init\` for the folder that ` +
      'the app serves, and check that its content security policy allows WebAssembly.',
    { code: 'runtime_missing', cause },
  )
}

/**
 * Loads the one build of the runtime that is stored in parts, and joins them. Rejects with the reason if a
 * part cannot be loaded.
 */
async function fetchSplitRuntime(folder: string): Promise<ArrayBuffer> {
  const parts = await Promise.all(
    RUNTIME_PARTS.map(async (name) => {
      const response = await fetch(folder + name)
      if (!response.ok) throw new Error(`${response.url} has the status ${response.status}.`)
      return response.blob()
    }),
  )
  return new Blob(parts).arrayBuffer()
}
