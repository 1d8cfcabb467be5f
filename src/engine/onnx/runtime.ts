/**
 * onnxruntime-web, opened once per thread and device. Everything that runs an ONNX graph goes
 * through here: language models and predictors alike.
 */
import type { InferenceSession, Tensor } from 'onnxruntime-web'
import { InoriginError } from '../../error.ts'
import type { Device } from '../../types/index.ts'
import { deviceFailure, modelUnusable, outOfMemory } from '../failure.ts'
import { createHeap, type Heap } from './heap/heap.ts'
import { openModule } from './heap/module.ts'
import { createHeapSession } from './heap/session.ts'
import { isRuntimeMissing, runtimeMissing } from './missing.ts'
import type { Ort } from './ort.ts'
import { inPieces } from './pieces.ts'
import { separateWeights } from './separate.ts'
import { watchGpu } from './watch.ts'

export interface RuntimeOptions {
  device: Device
  /** Folder URL that holds the wasm files, with a trailing slash. */
  folder: string
  /** Required on `webgpu`; stays the caller's to destroy. */
  gpu?: GPUDevice
  /**
   * On `wasm`: the build that reads weights one by one, which spares memory and starts slower.
   * Default: the other.
   */
  large?: boolean
}

export interface SessionOptions {
  /** External weights, by the path that the model refers to them by, such as `model.onnx_data`. */
  externalData?: readonly { path: string; data: Blob }[]
  /** Keeps weights as they are in the file, which spares memory and makes some runs slower. */
  compact?: boolean
  /** Outputs that stay in GPU memory on `webgpu` until they are disposed of. Default: none. */
  keepOnDevice?: (output: string) => boolean
  /**
   * On `wasm`: tensors may stay in the runtime's memory, and those outputs do until they are disposed
   * of. Sessions of a runtime share that memory.
   */
  keepInHeap?: (output: string) => boolean
}

/** A graph ready to run. Runs of one runtime queue up: two at once hang the thread. */
export interface Session {
  readonly inputs: readonly InferenceSession.ValueMetadata[]
  readonly outputs: readonly InferenceSession.ValueMetadata[]
  /** Where tensors may stay between runs, with `keepInHeap`. */
  readonly heap?: Heap
  /** Rejects with `unavailable` when the device gave out. */
  run(
    feeds: Record<string, Tensor>,
    fetches?: InferenceSession.FetchesType,
  ): Promise<Record<string, Tensor>>
  release(): Promise<void>
}

/** What is used of the runtime's own sessions. */
interface Graph extends Pick<InferenceSession, 'inputMetadata' | 'outputMetadata' | 'release'> {
  run(
    feeds: Record<string, Tensor>,
    fetches: InferenceSession.FetchesType,
  ): Promise<InferenceSession.ReturnType>
}

export interface Runtime {
  readonly ort: Ort
  readonly device: Device
  /**
   * Rejects with `unavailable` when the device gives out, or the model's bytes are no use to it.
   */
  createSession(model: Blob, options?: SessionOptions): Promise<Session>
  /** Stops watching the device; sessions are released by whoever made them. */
  release(): void
}

/**
 * Whether wasm can suspend for a promise here, which spares the larger and slower asyncify build.
 */
const hasSuspension = (): boolean => 'Suspending' in WebAssembly

function importOrt(device: Device, large: boolean): Promise<Ort> {
  if (device === 'wasm' && !(large && hasSuspension())) return import('onnxruntime-web/wasm')
  return hasSuspension() ? import('onnxruntime-web/jspi') : import('onnxruntime-web/webgpu')
}

/** Threads need shared memory, which browsers give to cross-origin isolated pages only. */
function threads(): number {
  return globalThis.crossOriginIsolated ? Math.min(4, navigator.hardwareConcurrency) : 1
}

export async function loadRuntime(options: RuntimeOptions): Promise<Runtime> {
  const { device, folder, gpu, large = false } = options
  if (device === 'webgpu' && !gpu) {
    throw new InoriginError('internal', 'The webgpu runtime needs a GPUDevice.')
  }
  const ort = await importOrt(device, large).catch((cause: unknown) => {
    throw runtimeMissing(folder, cause)
  })
  ort.env.logLevel = 'error'
  ort.env.wasm.wasmPaths = folder
  ort.env.wasm.numThreads = threads()

  const streams = large && hasSuspension()
  let heap: Heap | null = null
  const watch = gpu ? watchGpu(gpu) : null
  const exclusive = createLock()

  let crash: InoriginError | null = null
  const fault = (): InoriginError | null => watch?.failure() ?? crash

  /** One task at a time, on a device that is well before and after; else the device is the reason. */
  const onDevice = <T>(task: () => Promise<T>, explain: (thrown: unknown) => InoriginError) =>
    exclusive(async (): Promise<T> => {
      const failed = fault()
      if (failed) throw failed
      let result: T
      try {
        result = await task()
      } catch (thrown) {
        // A run fails on the GPU before the browser tells why.
        await watch?.settle()
        const error = watch?.failure() ?? deviceFailure(thrown) ?? explain(thrown)
        if (error.code === 'runtime_crashed') crash = error
        throw error
      }
      const late = fault()
      if (late) throw late
      return result
    })

  const unusable = (thrown: unknown): InoriginError =>
    isRuntimeMissing(thrown)
      ? runtimeMissing(folder, thrown)
      : modelUnusable(reason(thrown), thrown)

  const createSession: Runtime['createSession'] = async (model, wanted = {}) => {
    const { graph, externalData } = await separateWeights(model)
    const outside = [...(wanted.externalData ?? []), ...externalData].map(({ path, data }) => ({
      path,
      data: inPieces(data),
    }))
    const weight = sum(outside.map(({ data }) => data.size))
    const { keepInHeap } = wanted
    const create = async (): Promise<Graph> => {
      if (device === 'wasm' && keepInHeap) {
        heap ??= createHeap(ort, await openModule({ folder, streams, threads: threads() }))
        return createHeapSession(heap, graph, {
          externalData: outside,
          streams,
          config: configOf(wanted),
          keeps: keepInHeap,
        })
      }
      const bytes = new Uint8Array(await graph.arrayBuffer())
      const given = sessionOptions(device, gpu, { ...wanted, externalData: outside })
      return ort.InferenceSession.create(bytes, given)
    }
    const created = await onDevice(() => (watch ? watch.scope(create) : create()), unusable)
    return {
      inputs: created.inputMetadata,
      outputs: created.outputMetadata,
      ...(keepInHeap && heap && { heap }),
      run: (feeds, fetches) =>
        onDevice(
          () => {
            if (device === 'wasm') checkRoom(weight, feeds)
            return created.run(feeds, fetches ?? created.outputMetadata.map(({ name }) => name))
          },
          (thrown) => InoriginError.from(thrown),
        ) as Promise<Record<string, Tensor>>,
      release: () => exclusive(() => created.release()),
    }
  }

  return { ort, device, createSession, release: () => watch?.stop() }
}

function sessionOptions(
  device: Device,
  gpu: GPUDevice | undefined,
  { externalData, compact, keepOnDevice }: SessionOptions,
): InferenceSession.SessionOptions {
  const shared = { externalData, extra: configOf({ compact }), logSeverityLevel: 3 } as const
  if (device === 'wasm') return { ...shared, executionProviders: ['wasm'] }
  return {
    ...shared,
    // Else the runtime keeps what the GPU refuses to itself, and nobody learns of it.
    executionProviders: [{ name: 'webgpu', device: gpu, validationMode: 'disabled' }],
    preferredOutputLocation: keepOnDevice && locations(keepOnDevice),
  }
}

const configOf = ({ compact }: SessionOptions): Record<string, string> =>
  compact ? { 'session.disable_prepacking': '1' } : {}

/**
 * Output names are known only once the session exists, but it reads their locations while it is
 * made.
 */
function locations(keep: (output: string) => boolean): Record<string, Tensor.DataLocation> {
  return new Proxy({}, { get: (_, output) => (keep(String(output)) ? 'gpu-buffer' : 'cpu') })
}

/** What a 32-bit WebAssembly memory can hold, less what the runtime itself takes. */
const WASM_ROOM = 4 * 2 ** 30 - 256 * 2 ** 20

/**
 * Inputs that its memory has no room for the runtime writes over the beginning of it, and may then
 * compute anything: such a run is not begun.
 */
function checkRoom(weight: number, feeds: Record<string, Tensor>): void {
  const inputs = sum(
    Object.values(feeds).map(({ data }) => (ArrayBuffer.isView(data) ? data.byteLength : 0)),
  )
  if (weight + inputs > WASM_ROOM) throw outOfMemory(`${weight} + ${inputs} bytes`)
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0)

/** Runs tasks one after the other; a failed one does not stop the next. */
function createLock(): <T>(task: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return (task) => {
    const result = last.then(task, task)
    last = result.catch(() => undefined)
    return result
  }
}

/** The runtime's own words without its codes, as a sentence. */
function reason(thrown: unknown): string {
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  const text = message
    .replace(/^.*ERROR_MESSAGE: /s, '')
    .trim()
    .slice(0, 300)
  return /[.!?]$/.test(text) ? text : `${text}.`
}
