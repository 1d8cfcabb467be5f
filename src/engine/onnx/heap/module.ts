/**
 * The C interface of the WebAssembly runtime. The JavaScript interface above it copies each tensor
 * into the runtime's memory and back. For the KV cache of a long sequence, these copies would take
 * most of the time.
 */

import { outOfMemory } from '../../failure.ts'
import { setEnvironmentVariable } from './environment.ts'
import { compileWasm } from './wasm-file.ts'

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
  _OrtCreateSessionOptions(
    optimization: number,
    arena: boolean,
    pattern: boolean,
    mode: number,
    profiling: boolean,
    profile: number,
    id: number,
    logLevel: number,
    verbosity: number,
    path: number,
  ): number
  _OrtAddSessionConfigEntry(options: number, key: number, value: number): number
  _OrtReleaseSessionOptions(options: number): number
  _OrtCreateSession(address: number, bytes: number, options: number): number | Promise<number>
  _OrtReleaseSession(session: number): number
  _OrtGetInputOutputCount(session: number, inputs: number, outputs: number): number
  _OrtGetInputOutputMetadata(session: number, index: number, name: number, about: number): number
  _OrtCreateTensor(
    type: number,
    address: number,
    bytes: number,
    dims: number,
    rank: number,
    location: number,
  ): number
  _OrtGetTensorData(
    tensor: number,
    type: number,
    address: number,
    dims: number,
    rank: number,
  ): number
  _OrtReleaseTensor(tensor: number): number
  _OrtCreateRunOptions(logLevel: number, verbosity: number, terminate: boolean, tag: number): number
  _OrtReleaseRunOptions(options: number): number
  _OrtRun(
    session: number,
    inputNames: number,
    inputs: number,
    inputCount: number,
    outputNames: number,
    outputCount: number,
    outputs: number,
    options: number,
  ): number | Promise<number>
}

interface ModuleOptions {
  /** URL of the folder with the runtime's files, with a trailing slash. */
  folder: string
  /** `true` to load the build that can read external data from a `Blob` when needed. */
  streams: boolean
  threads: number
}

/**
 * Variable that turns off the flash attention of `GroupQueryAttention`, which is several times
 * slower in WebAssembly: docs/decisions/0009-no-flash-attention-on-wasm.md.
 */
const NO_FLASH_ATTENTION = 'ORT_GQA_DISABLE_FLASH_ATTENTION=1'

/** Receives the instance of the module that the factory is to use. */
type Receive = (instance: WebAssembly.Instance, module: WebAssembly.Module) => void

interface FactoryOptions {
  numThreads: number
  instantiateWasm(imports: WebAssembly.Imports, receive: Receive): void
}

type Factory = (options: FactoryOptions) => Promise<HeapModule>

/** Log level of the runtime: only errors. */
export const LOG_LEVEL = 3

/** Loads the module. Rejects with an error that `isRuntimeMissing` knows if a file is missing. */
export async function openModule({ folder, streams, threads }: ModuleOptions): Promise<HeapModule> {
  const path = `${folder}ort-wasm-simd-threaded${streams ? '.jspi' : ''}`
  const [{ default: open }, wasm] = await Promise.all([
    import(/* @vite-ignore */ `${path}.mjs`) as Promise<{ default: Factory }>,
    compileWasm(`${path}.wasm`),
  ])
  const module = await new Promise<HeapModule>((resolve, reject) => {
    // The factory does not see a failure of this callback.
    const instantiateWasm: FactoryOptions['instantiateWasm'] = (imports, receive) => {
      WebAssembly.instantiate(wasm, imports).then((instance) => receive(instance, wasm), reject)
    }
    open({ numThreads: threads, instantiateWasm }).then(resolve, reject)
  })
  setEnvironmentVariable(module.HEAPU8, NO_FLASH_ATTENTION)
  assertOk(module, module._OrtInit(threads, LOG_LEVEL))
  performance.mark('inorigin:runtime')
  return module
}

/** Throws an error with the runtime's message unless the code is 0. */
export function assertOk(module: HeapModule, code: number): void {
  if (code === 0) return
  const at = allocate(module, 8)
  module._OrtGetLastError(at, at + 4)
  const message = module.getValue(at + 4, '*')
  const words = message ? module.UTF8ToString(message) : 'The runtime gave no reason.'
  module._free(at)
  throw new Error(`ERROR_CODE: ${code}, ERROR_MESSAGE: ${words}`)
}

/** Returns a handle from the runtime; throws the runtime's error if it is 0. */
export function assertHandle(module: HeapModule, handle: number): number {
  if (handle === 0) assertOk(module, -1)
  return handle
}

/** Allocates bytes and returns their address. Throws `unavailable` if memory is exhausted. */
export function allocate(module: HeapModule, bytes: number): number {
  const address = module._malloc(Math.max(bytes, 8))
  if (address === 0) throw outOfMemory(`${bytes} bytes`)
  // WebAssembly returns an address above 2 GiB as a negative number.
  return address >>> 0
}

/**
 * Calls a function that writes `count` numbers to the address it is given, and returns them. Throws
 * the runtime's error if the function fails.
 */
export function readOutputs(
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
export function writeText(module: HeapModule, text: string): number {
  const bytes = module.lengthBytesUTF8(text) + 1
  const address = allocate(module, bytes)
  module.stringToUTF8(text, address, bytes)
  return address
}

/** Writes 32-bit integers and returns their address, which the caller frees. */
export function writeNumbers(module: HeapModule, numbers: readonly number[]): number {
  const address = allocate(module, 4 * numbers.length)
  numbers.forEach((number, index) => module.setValue(address + 4 * index, number, 'i32'))
  return address
}
