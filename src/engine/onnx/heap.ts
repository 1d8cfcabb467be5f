/** Tensors in the memory of the WebAssembly runtime, which runs read and write without copies. */
import type { InferenceSession, Tensor } from 'onnxruntime-web'
import { outOfMemory } from '../failure.ts'
import { bytesOf, kindOf, type Ort, typeName } from './tensor.ts'

/** A tensor of the runtime. */
interface HeapTensor {
  /** The runtime's handle of the tensor. */
  handle: number
  /** Address of the tensor's elements. */
  address: number
}

/** ONNX Runtime's number of a data location in CPU memory. */
const CPU_LOCATION = 1

/** The tensors in the memory of a module. */
export class Heap {
  readonly module: HeapModule
  /** `true` if external data of a session may be passed as a `Blob`. */
  readonly streams: boolean
  readonly #Tensor: Ort['Tensor']
  readonly #tensors = new WeakMap<object, HeapTensor>()

  constructor({ Tensor: OrtTensor }: Pick<Ort, 'Tensor'>, module: HeapModule, streams: boolean) {
    this.module = module
    this.streams = streams
    this.#Tensor = OrtTensor
  }

  /** Creates a tensor of zeros. The tensor has no `data`; its `dispose` frees the memory. */
  allocate(type: Tensor.Type, dims: readonly number[]): Tensor {
    const bytes = bytesOf({ type, dims })
    const address = allocate(this.module, bytes)
    this.module.HEAPU8.fill(0, address, address + bytes)
    const heapTensor = { address, handle: createHandle(this.module, type, address, dims) }
    return this.#createTensor(type, dims, heapTensor, () => this.free(heapTensor))
  }

  /** Wraps the output of a run without a copy. */
  adopt(handle: number): Tensor {
    const { type, address, dims } = describe(this.module, handle)
    const free = () => this.module._OrtReleaseTensor(handle)
    return this.#createTensor(type, dims, { handle, address }, free)
  }

  /** Copies the output of a run into an ordinary tensor and frees the original. */
  copyOut(handle: number): Tensor {
    const { type, address, dims } = describe(this.module, handle)
    const bytes = this.module.HEAPU8.slice(address, address + bytesOf({ type, dims }))
    this.module._OrtReleaseTensor(handle)
    return new this.#Tensor(type, new (kindOf(type).array)(bytes.buffer), dims)
  }

  /** Copies an ordinary tensor into the runtime for one run; {@link Heap.free} frees the copy. */
  copyIn(tensor: Tensor): HeapTensor {
    const { buffer, byteOffset, byteLength } = tensor.data as Uint8Array
    const address = allocate(this.module, byteLength)
    this.module.HEAPU8.set(new Uint8Array(buffer, byteOffset, byteLength), address)
    return { address, handle: createHandle(this.module, tensor.type, address, tensor.dims) }
  }

  /** Frees a copy that {@link Heap.copyIn} made. */
  free({ handle, address }: HeapTensor): void {
    this.module._OrtReleaseTensor(handle)
    this.module._free(address)
  }

  /** Returns the handle and address of a tensor; `undefined` if it is not in this memory. */
  find(tensor: Tensor): HeapTensor | undefined {
    return this.#tensors.get(tensor)
  }

  /** Creates an object without `data` that callers can pass on like a tensor. */
  #createTensor(
    type: Tensor.Type,
    dims: readonly number[],
    heapTensor: HeapTensor,
    free: () => void,
  ): Tensor {
    let alive = true
    const dispose = (): void => {
      if (alive) free()
      alive = false
    }
    const tensor = { type, dims, location: 'none', dispose }
    this.#tensors.set(tensor, heapTensor)
    return tensor as unknown as Tensor
  }
}

/** Creates a tensor of the runtime around elements. Returns its handle. */
function createHandle(
  module: HeapModule,
  type: Tensor.Type,
  address: number,
  dims: readonly number[],
): number {
  const sizes = writeNumbers(module, dims)
  const bytes = bytesOf({ type, dims })
  const { number } = kindOf(type)
  const handle = module._OrtCreateTensor(number, address, bytes, sizes, dims.length, CPU_LOCATION)
  module._free(sizes)
  return assertHandle(module, handle)
}

/** Reads the type, place and shape of a tensor of the runtime. */
function describe(module: HeapModule, handle: number) {
  const [kind = 0, address = 0, sizes = 0, rank = 0] = readOutputs(module, 4, (at) =>
    module._OrtGetTensorData(handle, at, at + 4, at + 8, at + 12),
  )
  const dims = Array.from({ length: rank }, (_, index) => module.getValue(sizes + 4 * index, 'i32'))
  module._OrtFree(sizes)
  const type = typeName(kind)
  if (!type) throw new Error(`Tensors of ONNX type ${kind} are not supported.`)
  return { type, address, dims }
}

/** Log level of the runtime: only errors. */
const LOG_LEVEL = 3

/** Optimization level of the runtime: all graph optimizations. */
const ALL_OPTIMIZATIONS = 99

/**
 * Options of all sessions: the optimization level, no arena, no memory pattern, the sequential mode,
 * no profiling and its file, no id, the log level and its verbosity, no path of the optimized graph.
 */
const SESSION_OPTIONS = [ALL_OPTIMIZATIONS, false, false, 0, false, 0, 0, LOG_LEVEL, 0, 0] as const

/** Input or output of the graph. */
interface Port {
  /** Address of the name. */
  name: number
  metadata: InferenceSession.ValueMetadata
}

interface HeapSessionOptions {
  externalData: readonly { path: string; data: Blob }[]
  /** Entries of the runtime's session configuration. */
  config: Readonly<Record<string, string>>
  /** Returns `true` for outputs that stay in the heap. */
  keeps(output: string): boolean
}

/** A session whose inputs and outputs may stay in the memory of the WebAssembly runtime. */
export class HeapSession {
  readonly heap: Heap
  readonly inputMetadata: readonly InferenceSession.ValueMetadata[]
  readonly outputMetadata: readonly InferenceSession.ValueMetadata[]
  readonly #session: number
  readonly #inputs: readonly Port[]
  readonly #outputs: readonly Port[]
  readonly #keeps: HeapSessionOptions['keeps']

  /** Loads a graph. Rejects with the runtime's message if it fails. */
  static async open(
    heap: Heap,
    graph: ArrayBuffer,
    options: HeapSessionOptions,
  ): Promise<HeapSession> {
    return new HeapSession(heap, await load(heap, graph, options), options.keeps)
  }

  private constructor(heap: Heap, session: number, keeps: HeapSessionOptions['keeps']) {
    this.heap = heap
    this.#session = session
    this.#keeps = keeps
    const { module } = heap
    const [inputs = 0, outputs = 0] = readOutputs(module, 2, (at) =>
      module._OrtGetInputOutputCount(session, at, at + 4),
    )
    const ports = Array.from({ length: inputs + outputs }, (_, index) =>
      portOf(module, session, index),
    )
    this.#inputs = ports.slice(0, inputs)
    this.#outputs = ports.slice(inputs)
    this.inputMetadata = this.#inputs.map(({ metadata }) => metadata)
    this.outputMetadata = this.#outputs.map(({ metadata }) => metadata)
  }

  /** Runs the graph as the runtime's session does. A fetch may be a heap tensor to write to. */
  async run(
    feeds: Record<string, Tensor>,
    fetches: InferenceSession.FetchesType,
  ): Promise<Record<string, Tensor>> {
    const { heap } = this
    const { module } = heap
    const copies: HeapTensor[] = []
    const addresses: number[] = []
    const numbers = (values: readonly number[]): number => {
      const address = writeNumbers(module, values)
      addresses.push(address)
      return address
    }
    /** Returns the handle of a tensor, which is copied into the heap if it is not there. */
    const handleOf = (tensor: Tensor): number => {
      const found = heap.find(tensor)
      if (found) return found.handle
      const copy = heap.copyIn(tensor)
      copies.push(copy)
      return copy.handle
    }
    const requestedOutputs = fetchesOf(fetches)
    let settings = 0
    try {
      const fed = Object.entries(feeds)
      const inputNames = numbers(fed.map(([name]) => nameOf(this.#inputs, name)))
      const inputValues = numbers(fed.map(([, tensor]) => handleOf(tensor)))
      const outputNames = numbers(requestedOutputs.map(([name]) => nameOf(this.#outputs, name)))
      const preallocated = requestedOutputs.map(([, tensor]) => (tensor ? handleOf(tensor) : 0))
      const outputValues = numbers(preallocated)
      settings = assertHandle(module, module._OrtCreateRunOptions(LOG_LEVEL, 0, false, 0))
      const code = await module._OrtRun(
        this.#session,
        inputNames,
        inputValues,
        fed.length,
        outputNames,
        requestedOutputs.length,
        outputValues,
        settings,
      )
      assertOk(module, code)
      return Object.fromEntries(
        requestedOutputs.map(([name, tensor], index) => {
          if (tensor) return [name, tensor]
          const handle = module.getValue(outputValues + 4 * index, '*')
          return [name, this.#keeps(name) ? heap.adopt(handle) : heap.copyOut(handle)]
        }),
      )
    } finally {
      if (settings !== 0) module._OrtReleaseRunOptions(settings)
      for (const heapTensor of copies) heap.free(heapTensor)
      for (const address of addresses) module._free(address)
    }
  }

  async release(): Promise<void> {
    const { module } = this.heap
    for (const { name } of [...this.#inputs, ...this.#outputs]) module._OrtFree(name)
    assertOk(module, module._OrtReleaseSession(this.#session))
  }
}

/** Creates a session of the runtime, and resolves with its handle. */
async function load(
  { module, streams }: Heap,
  graph: ArrayBuffer,
  { externalData, config }: HeapSessionOptions,
): Promise<number> {
  const bytes = new Uint8Array(graph)
  for (const { path, data } of externalData)
    module.mountExternalData(path, streams ? data : new Uint8Array(await data.arrayBuffer()))
  const settings = assertHandle(module, module._OrtCreateSessionOptions(...SESSION_OPTIONS))
  const addresses = [allocate(module, bytes.length)] as [number, ...number[]]
  try {
    for (const entry of Object.entries(config)) {
      const [key = 0, value = 0] = entry.map((text) => writeText(module, text))
      addresses.push(key, value)
      assertOk(module, module._OrtAddSessionConfigEntry(settings, key, value))
    }
    const [address] = addresses
    module.HEAPU8.set(bytes, address)
    return assertHandle(module, await module._OrtCreateSession(address, bytes.length, settings))
  } finally {
    for (const each of addresses) module._free(each)
    module._OrtReleaseSessionOptions(settings)
    module.unmountExternalData()
  }
}

/**
 * Reads the metadata of an input or output. In memory it has the type, the rank, a name (or 0) for
 * each dimension, and then a size for each dimension.
 */
function portOf(module: HeapModule, session: number, index: number): Port {
  const [address = 0, about = 0] = readOutputs(module, 2, (at) =>
    module._OrtGetInputOutputMetadata(session, index, at, at + 4),
  )
  const name = module.UTF8ToString(address)
  const type = typeName(module.getValue(about, 'i32'))
  const rank = type ? module.getValue(about + 4, 'i32') : 0
  const shape = Array.from({ length: rank }, (_, dimension) => {
    const symbol = module.getValue(about + 8 + 4 * dimension, '*') >>> 0
    return symbol
      ? module.UTF8ToString(symbol)
      : module.getValue(about + 8 + 4 * (rank + dimension), 'i32')
  })
  module._OrtFree(about)
  return {
    name: address,
    metadata: type ? { name, isTensor: true, type, shape } : { name, isTensor: false },
  }
}

const fetchesOf = (fetches: InferenceSession.FetchesType): [string, Tensor | null][] =>
  Array.isArray(fetches)
    ? fetches.map((name: string) => [name, null])
    : Object.entries(fetches as Record<string, Tensor | null>)

function nameOf(ports: readonly Port[], name: string): number {
  const found = ports.find(({ metadata }) => metadata.name === name)
  if (!found) throw new Error(`The graph has no input or output named ${name}.`)
  return found.name
}

// The C interface of the WebAssembly runtime. The JavaScript interface above it copies each tensor
// into the runtime's memory and back. For the KV cache of a long sequence, these copies would take
// most of the time.

/** The part of the WebAssembly module that is used: functions of ONNX Runtime's C interface. */
export interface HeapModule {
  readonly HEAPU8: Uint8Array<ArrayBuffer>
  _malloc(bytes: number): number
  _free(address: number): void
  getValue(address: number, type: 'i32' | '*'): number
  setValue(address: number, value: number, type: 'i32' | '*'): void
  UTF8ToString(address: number): string
  lengthBytesUTF8(text: string): number
  stringToUTF8(text: string, address: number, bytes: number): void
  /** Adds external data; only a build that can suspend accepts a `Blob`. */
  mountExternalData(path: string, data: Uint8Array | Blob): void
  unmountExternalData(): void
  _OrtInit(threads: number, logLevel: number): number
  _OrtGetLastError(code: number, message: number): number
  _OrtFree(address: number): number
  _OrtCreateSessionOptions(...options: typeof SESSION_OPTIONS): number
  _OrtAddSessionConfigEntry(options: number, key: number, value: number): number
  _OrtReleaseSessionOptions(options: number): number
  _OrtCreateSession(address: number, bytes: number, options: number): number | Promise<number>
  _OrtReleaseSession(session: number): number
  _OrtGetInputOutputCount(session: number, inputs: number, outputs: number): number
  _OrtGetInputOutputMetadata(session: number, index: number, name: number, about: number): number
  /** The arguments are the type, the address, the bytes, the dimensions, the rank, the location. */
  _OrtCreateTensor(...numbers: number[]): number
  /** The arguments are the tensor, and addresses of type, address, dimensions and rank. */
  _OrtGetTensorData(...numbers: number[]): number
  _OrtReleaseTensor(tensor: number): number
  _OrtCreateRunOptions(logLevel: number, verbosity: number, terminate: boolean, tag: number): number
  _OrtReleaseRunOptions(options: number): number
  /**
   * The arguments are the session, names and values of the inputs and their count, names of the
   * outputs and their count, values of the outputs, and options.
   */
  _OrtRun(...numbers: number[]): number | Promise<number>
}

/**
 * Variable that turns off the flash attention of `GroupQueryAttention`, which is several times
 * slower in WebAssembly: docs/decisions/0009-no-flash-attention-on-wasm.md.
 */
const NO_FLASH_ATTENTION = 'ORT_GQA_DISABLE_FLASH_ATTENTION=1'

type Factory = (options: {
  numThreads: number
  /** Passes the instance of the module that the factory is to use to `receive`. */
  instantiateWasm(
    imports: WebAssembly.Imports,
    receive: (instance: WebAssembly.Instance, module: WebAssembly.Module) => void,
  ): void
}) => Promise<HeapModule>

/**
 * Loads the module from a folder, whose URL has a trailing slash. With `streams`, it is the build that
 * can read external data from a `Blob` when needed. Rejects with an error that `isRuntimeMissing`
 * knows if a file is missing.
 */
export async function openModule(
  folder: string,
  streams: boolean,
  threads: number,
): Promise<HeapModule> {
  const path = `${folder}ort-wasm-simd-threaded${streams ? '.jspi' : ''}`
  const [{ default: open }, wasm] = await Promise.all([
    import(/* @vite-ignore */ `${path}.mjs`) as Promise<{ default: Factory }>,
    compileWasm(`${path}.wasm`),
  ])
  const module = await new Promise<HeapModule>((resolve, reject) => {
    open({
      numThreads: threads,
      // The factory does not see a failure of this callback.
      instantiateWasm(imports, receive) {
        WebAssembly.instantiate(wasm, imports).then((instance) => receive(instance, wasm), reject)
      },
    }).then(resolve, reject)
  })
  setEnvironmentVariable(module.HEAPU8, NO_FLASH_ATTENTION)
  assertOk(module, module._OrtInit(threads, LOG_LEVEL))
  performance.mark('inorigin:runtime')
  return module
}

/** Throws an error with the runtime's message unless the code is 0. */
function assertOk(module: HeapModule, code: number): void {
  if (code === 0) return
  const at = allocate(module, 8)
  module._OrtGetLastError(at, at + 4)
  const message = module.getValue(at + 4, '*')
  const words = message ? module.UTF8ToString(message) : 'The runtime gave no reason.'
  module._free(at)
  throw new Error(`ERROR_CODE: ${code}, ERROR_MESSAGE: ${words}`)
}

/** Returns a handle from the runtime; throws the runtime's error if it is 0. */
function assertHandle(module: HeapModule, handle: number): number {
  if (handle === 0) assertOk(module, -1)
  return handle
}

/** Allocates bytes and returns their address. Throws `unavailable` if memory is exhausted. */
function allocate(module: HeapModule, bytes: number): number {
  const address = module._malloc(Math.max(bytes, 8))
  if (address === 0) throw outOfMemory(`${bytes} bytes`)
  // WebAssembly returns an address above 2 GiB as a negative number.
  return address >>> 0
}

/**
 * Calls a function that writes `count` numbers to the address it is given, and returns them. Throws
 * the runtime's error if the function fails.
 */
function readOutputs(
  module: HeapModule,
  count: number,
  call: (address: number) => number,
): number[] {
  const at = allocate(module, 4 * count)
  try {
    assertOk(module, call(at))
    return Array.from({ length: count }, (_, index) => module.getValue(at + 4 * index, '*') >>> 0)
  } finally {
    module._free(at)
  }
}

/** Writes a text to the runtime's memory and returns its address, which the caller frees. */
function writeText(module: HeapModule, text: string): number {
  const bytes = module.lengthBytesUTF8(text) + 1
  const address = allocate(module, bytes)
  module.stringToUTF8(text, address, bytes)
  return address
}

/** Writes 32-bit integers and returns their address, which the caller frees. */
function writeNumbers(module: HeapModule, numbers: readonly number[]): number {
  const address = allocate(module, 4 * numbers.length)
  numbers.forEach((number, index) => module.setValue(address + 4 * index, number, 'i32'))
  return address
}

// Sets variables in the environment of the WebAssembly runtime. Its C++ code has switches there
// that no session option sets. The module exports no `ENV` and runs no `preRun`, so a variable is
// written to the memory of the module, where emscripten stored the environment.

/** Variables that emscripten gives to every program, and that ONNX Runtime does not read. */
const UNUSED_VARIABLES = 'USER=web_user\0LOGNAME=web_user\0PATH=/\0'

/**
 * Writes a variable such as `NAME=1`, of at most 37 bytes, over the unused ones in the memory of a
 * module. A session reads it while it is created. If there are no unused variables, nothing changes.
 */
function setEnvironmentVariable(memory: Uint8Array, variable: string): void {
  const text = new TextEncoder()
  const at = findBytes(memory, text.encode(UNUSED_VARIABLES))
  if (at >= 0) memory.set(text.encode(`${variable}\0`), at)
}

/** Returns the position of the first occurrence of `wanted`, or -1. */
function findBytes(bytes: Uint8Array, wanted: Uint8Array): number {
  const first = wanted[0] as number
  for (let at = bytes.indexOf(first); at >= 0; at = bytes.indexOf(first, at + 1)) {
    if (wanted.every((byte, index) => bytes[at + index] === byte)) return at
  }
  return -1
}

/**
 * Compiles a file while it arrives, so that the browser keeps compiled code of it. The service worker
 * answers `no-cache` with its copy, unchecked, because to hash 14 MB first delays the first token. If
 * that does not compile, `reload` makes it check the copy (docs/decisions/0015-assets-by-digest.md).
 * Rejects with a `RangeError` if memory is exhausted, and else with an error that names the URL.
 */
async function compileWasm(url: string): Promise<WebAssembly.Module> {
  try {
    return await fetchAndCompile(url, 'no-cache').catch(() => fetchAndCompile(url, 'reload'))
  } catch (cause) {
    if (cause instanceof RangeError) throw cause
    throw new Error(`Failed to load ${url}: ${String(cause)}`, { cause })
  }
}

async function fetchAndCompile(url: string, cache: RequestCache): Promise<WebAssembly.Module> {
  const response = await fetch(url, { cache })
  if (!response.ok) throw new Error(`The status is ${response.status}.`)
  const isTyped = response.headers.get('content-type')?.startsWith('application/wasm')
  return isTyped
    ? WebAssembly.compileStreaming(response)
    : WebAssembly.compile(await response.arrayBuffer())
}
