/** Loads a model with the WebLLM package and exposes its documented low-level calls. */
import type { ChatOptions, LogitProcessor, MLCEngine } from '@mlc-ai/web-llm'
import { MANIFEST_FILE, WEIGHT_LIST_FILES } from '../../catalog/mlc/model-files.ts'
import { InoriginError } from '../../error.ts'
import type { Files } from '../engine.ts'
import {
  deviceFailure,
  deviceLost,
  gpuFailure,
  loadingCancelled,
  modelUnusable,
  outOfMemory,
  resourceMissing,
  settleWithTimeout,
} from '../failure.ts'
import { readChatConfig } from './config-files.ts'
import type { Pipeline } from './decoder.ts'

export interface LoadedPipeline extends Pipeline {
  /** Frees the model and its device. */
  release(): Promise<void>
}

export interface PipelineOptions {
  /** Tokens to allocate the KV cache for; ignored by models with a sliding window. */
  contextWindow: number
  signal: AbortSignal
}

/** Id of the only model in the `model_list` that WebLLM gets. */
const MODEL_ID = 'model'

/**
 * Loads the model in these files. Rejects with `unavailable` if the files or the device cannot be
 * used, and with `aborted` when the signal aborts.
 */
export async function openPipeline(
  files: Files,
  { contextWindow, signal }: PipelineOptions,
): Promise<LoadedPipeline> {
  const library = [...files.keys()].find((name) => name.endsWith('.wasm'))
  if (library === undefined) throw modelUnusable('its catalog entry has no resource of type wasm.')
  // WebLLM can get files only from `caches`. This thread runs nothing else and ends with the model.
  Object.defineProperty(globalThis, 'caches', { value: openArtifacts(files), configurable: true })
  const reader = new LogitsReader()
  const engine = await createEngine(files, library, reader)
  const { sliding_window_size: window } = await readChatConfig(files)
  const slides = typeof window === 'number' && window > 0
  const device = new DeviceWatch()
  const release = async (): Promise<void> => {
    await settleWithTimeout(engine.unload())
    // The package does not free a model whose loading was interrupted.
    device.release()
  }
  try {
    const options = slides ? {} : { context_window_size: contextWindow }
    await device.guard(() => load(engine, options, signal))
  } catch (thrown) {
    await release()
    if (signal.aborted) throw loadingCancelled()
    const file = files.get(library)
    throw (
      (file && isLinkFailure(thrown) && (await findForeignRelease(library, file, thrown))) ||
      loadingFailure(thrown)
    )
  }

  const run = async (tokens: readonly number[]): Promise<unknown> => {
    try {
      return await engine.forwardTokensAndSample([...tokens], tokens.length > 1)
    } catch (thrown) {
      // WebLLM cannot sample from NaN logits; the sampler reports that error instead.
      if (reader.scores?.some(Number.isNaN)) return null
      throw thrown
    }
  }
  return {
    async forward(tokens) {
      reader.scores = null
      await device.guard(() => run(tokens))
      if (!reader.scores) throw new InoriginError('internal', 'WebLLM returned no logits.')
      return reader.scores
    },
    reset: () => device.guard(() => engine.resetChat()),
    release,
  }
}

/** Keeps the logits of the last forward pass. */
class LogitsReader implements LogitProcessor {
  scores: Float32Array | null = null

  processLogits(logits: Float32Array): Float32Array {
    // The package passes a copy and only reads it later, so no second copy is needed.
    this.scores = logits
    return logits
  }

  processSampledToken(): void {}

  resetState(): void {}
}

/** Imports WebLLM and creates its engine, which has one model, with this compiled library. */
async function createEngine(
  files: Files,
  library: string,
  reader: LogitProcessor,
): Promise<MLCEngine> {
  const { MLCEngine: Engine } = await import('@mlc-ai/web-llm').catch((cause: unknown) => {
    const what = 'This app does not include WebLLM, which runs models compiled by MLC.'
    const todo = 'Run `npx inorigin init <public folder> --mlc`.'
    throw new InoriginError('unavailable', `${what} ${todo}`, { code: 'engine_missing', cause })
  })
  return new Engine({
    appConfig: {
      cacheBackend: 'cache',
      model_list: [
        {
          model: MODEL_URL,
          model_id: MODEL_ID,
          model_lib: new URL(library, MODEL_URL).href,
          ...(files.has(MANIFEST_FILE) && { model_manifest: MANIFEST_FILE }),
        },
      ],
    },
    logitProcessorRegistry: new Map([[MODEL_ID, reader]]),
    logLevel: 'SILENT',
  })
}

async function load(engine: MLCEngine, options: ChatOptions, signal: AbortSignal): Promise<void> {
  const stop = (): void => void engine.unload().catch(() => undefined)
  signal.addEventListener('abort', stop)
  try {
    signal.throwIfAborted()
    // WebLLM's own sample is discarded, because the engine's sampler chooses from the logits.
    await engine.reload(MODEL_ID, {
      ...options,
      temperature: 0,
      top_p: 1,
      repetition_penalty: 1,
      frequency_penalty: 0,
      presence_penalty: 0,
    })
    signal.throwIfAborted()
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/** Returns `true` if the library imports a function that there is not. */
const isLinkFailure = (thrown: unknown): boolean =>
  thrown instanceof WebAssembly.LinkError || /\bImport #\d/.test(String(thrown))

const NO_WEBGPU = 'this browser offers no WebGPU here'

/** Device limitations by the name of WebLLM's error, or by the message of one without a name. */
const DEVICE_LACKS: readonly (readonly [pattern: RegExp, lacks: string])[] = [
  [/^WebGPUNot(Available|Found)Error:/, NO_WEBGPU],
  [/^ShaderF16SupportError:/, 'the GPU has no shader-f16'],
  [/^FeatureSupportError:/, 'the GPU lacks a feature that the model needs'],
  [/unable to find a compatible gpu/i, NO_WEBGPU],
  [
    /cannot initialize runtime because of requested (\w+)/i,
    'a limit of the GPU is too low for the model',
  ],
  [
    /requires unsupported webgpu feature|requires maxStorageBufferBindingSize/i,
    'the GPU lacks a feature or limit that the model needs',
  ],
  [/requestDevice/, 'the GPU device request failed'],
]

function loadingFailure(thrown: unknown): InoriginError {
  if (thrown instanceof InoriginError) return thrown
  const { name, message } = thrown instanceof Error ? thrown : { name: '', message: String(thrown) }
  const lacks = DEVICE_LACKS.find(([pattern]) => pattern.test(`${name}: ${message}`))?.[1]
  if (lacks !== undefined) {
    const what = `The model cannot run: ${lacks} (${message.slice(0, 200)}).`
    const todo = 'Choose another implementation, such as one of the same model with 32-bit floats.'
    const cause = { code: 'no_webgpu', cause: thrown } as const
    return new InoriginError('unavailable', `${what} ${todo}`, cause)
  }
  // The package reports a lost device most often because a buffer allocation failed.
  if (name === 'DeviceLostError') return outOfMemory(thrown)
  const failed = deviceFailure(thrown)
  // A library of another version lacks functions, which is no sign of too little memory.
  const foreign = failed?.code === 'runtime_crashed' && thrown instanceof TypeError
  if (failed && !foreign) return failed
  return modelUnusable(message.replace(/\.?$/, '.'), thrown)
}

/** Base URL of the model's files. It is never fetched; {@link openArtifacts} serves its content. */
export const MODEL_URL = 'https://model.invalid/resolve/main/'

/**
 * Returns a replacement for the worker's `caches`, which serves a model's files to WebLLM. Nothing is
 * fetched, and no file is stored twice. A match for a missing file rejects with
 * `unavailable` and names the file, so that WebLLM does not try to fetch it.
 */
export function openArtifacts(files: Files): Pick<CacheStorage, 'open'> {
  const fileOf = (url: string): Blob => {
    const name = decodeURIComponent(url.slice(MODEL_URL.length))
    const names = WEIGHT_LIST_FILES.includes(name) ? WEIGHT_LIST_FILES : [name]
    const file = names.map((each) => files.get(each)).find((each) => each !== undefined)
    if (!url.startsWith(MODEL_URL) || !file) throw resourceMissing(name)
    return file
  }
  const cache = {
    async match(request: RequestInfo | URL): Promise<Response> {
      return new Response(fileOf(request instanceof Request ? request.url : String(request)))
    },
    async keys(): Promise<Request[]> {
      return Array.from(files.keys(), (name) => new Request(new URL(name, MODEL_URL)))
    },
  }
  return { open: async () => cache as unknown as Cache }
}

/**
 * Watches every device that this thread requests from now on, until `release`. WebLLM requests one
 * for itself. When the device is lost, the package only logs it and drops its model. When a buffer
 * allocation fails, it destroys the device. Pending and later calls learn of neither.
 */
export class DeviceWatch {
  readonly #devices: GPUDevice[] = []
  readonly #stop: () => void
  readonly #failed: Promise<never>
  #fail: (reason: InoriginError) => void = () => undefined
  #failure: InoriginError | null = null
  #released = false

  constructor() {
    this.#failed = new Promise((_, reject) => (this.#fail = reject))
    // Without a handler, a failure that no `guard` waits for would be an unhandled rejection.
    this.#failed.catch(() => undefined)
    this.#stop = onRequest((device) => this.#watch(device))
  }

  /** Resolves with the result of the work; rejects if the device has failed or fails meanwhile. */
  async guard<T>(work: () => Promise<T>): Promise<T> {
    if (this.#failure) throw this.#failure
    try {
      const done = await Promise.race([work(), this.#failed])
      if (this.#failure) throw this.#failure
      return done
    } catch (thrown) {
      // The package's own error may only be a consequence of the device failure. Device events are
      // queued behind the tasks that settle calls.
      await new Promise((resolve) => setTimeout(resolve))
      throw this.#failure ?? thrown
    }
  }

  /** Destroys the devices and stops watching; failures that follow are ignored. */
  release(): void {
    this.#released = true
    this.#stop()
    for (const device of this.#devices) device.destroy()
  }

  #watch(device: GPUDevice): void {
    this.#devices.push(device)
    void device.lost.then(({ reason, message }) =>
      // Only the package destroys the device, and only when it runs out of memory.
      this.#note(reason === 'destroyed' ? outOfMemory(message) : deviceLost(message)),
    )
    device.addEventListener('uncapturederror', (event) =>
      this.#note(gpuFailure((event as GPUUncapturedErrorEvent).error)),
    )
  }

  #note(reason: InoriginError): void {
    if (this.#released) return
    this.#failure ??= reason
    this.#fail(this.#failure)
  }
}

/**
 * Calls `onDevice` with each device that adapters of this thread create. The thread belongs to one
 * model. Returns a function that restores `requestDevice`.
 */
function onRequest(onDevice: (device: GPUDevice) => void): () => void {
  if (typeof GPUAdapter === 'undefined') return () => undefined
  const { requestDevice } = GPUAdapter.prototype
  const watchedRequest = async function (this: GPUAdapter, descriptor?: GPUDeviceDescriptor) {
    const device = await requestDevice.call(this, descriptor)
    onDevice(device)
    return device
  }
  GPUAdapter.prototype.requestDevice = watchedRequest
  return () => {
    if (GPUAdapter.prototype.requestDevice === watchedRequest)
      GPUAdapter.prototype.requestDevice = requestDevice
  }
}

/** Release of WebLLM in this package. */
export const WEBLLM_RELEASE = '0.2.86'

/** Functions that only libraries of other releases import, the oldest first. */
const FOREIGN_IMPORTS: readonly (readonly [name: string, releases: string])[] = [
  ['TVMWasmPackedCFunc', '0.2.79 or earlier'],
  ['TVMWasmPackedCFuncFinalizer', '0.2.79 or earlier'],
  ['_ZN3tvm7runtime9threading10NumThreadsEv', '0.2.80 to 0.2.84'],
  ['_ZN3tvm7runtime9threading15ResetThreadPoolEv', '0.2.80 to 0.2.84'],
]

/**
 * Resolves with the error for a library that was compiled for another release; `null` if its imports
 * do not show one. Call it after the library failed to link, because it is compiled again.
 */
export async function findForeignRelease(
  name: string,
  library: Blob,
  cause: unknown,
): Promise<InoriginError | null> {
  const module = await WebAssembly.compile(await library.arrayBuffer()).catch(() => null)
  const imported = new Set(module && WebAssembly.Module.imports(module).map((each) => each.name))
  const found = FOREIGN_IMPORTS.find(([each]) => imported.has(each))
  if (!found) return null
  const [symbol, releases] = found
  const what = `${name} was compiled for WebLLM ${releases}: it imports ${symbol}, which WebLLM`
  const todo = `Compile the model again with the MLC release for ${WEBLLM_RELEASE}`
  return new InoriginError(
    'unavailable',
    `${what} ${WEBLLM_RELEASE} of this app does not have. ${todo}, or use a library from its list.`,
    { code: 'model_unusable', cause },
  )
}
