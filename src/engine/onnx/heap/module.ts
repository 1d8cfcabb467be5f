/**
 * The wasm runtime below its JavaScript interface, which copies every tensor into its memory and out
 * of it again: for what a conversation is remembered by, that is most of the time of a long one.
 */

import { outOfMemory } from '../../failure.ts'

/** What is used of the module; its functions are those of ONNX Runtime's C interface. */
export interface HeapModule {
  readonly HEAPU8: Uint8Array<ArrayBuffer>
  _malloc(bytes: number): number
  _free(address: number): void
  getValue(address: number, type: 'i32' | '*'): number
  setValue(address: number, value: number, type: 'i32' | '*'): void
  UTF8ToString(address: number): string
  lengthBytesUTF8(text: string): number
  stringToUTF8(text: string, address: number, bytes: number): void
  /** Takes a `Blob` where the build can wait for one. */
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

export interface ModuleOptions {
  /** Folder URL that holds the runtime's files, with a trailing slash. */
  folder: string
  /** The build that reads external data from a `Blob` as it is needed. */
  streams: boolean
  threads: number
}

type Factory = (options: object) => Promise<HeapModule>

/** Errors alone. */
export const LOG_LEVEL = 3

/** Rejects with what the browser says when a file is missing. */
export async function openModule({ folder, streams, threads }: ModuleOptions): Promise<HeapModule> {
  const url = `${folder}ort-wasm-simd-threaded${streams ? '.jspi' : ''}.mjs`
  const { default: open } = (await import(/* @vite-ignore */ url)) as { default: Factory }
  const module = await open({ numThreads: threads, locateFile: (name: string) => folder + name })
  check(module, module._OrtInit(threads, LOG_LEVEL))
  return module
}

/** Throws in the runtime's own words. */
export function check(module: HeapModule, code: number): void {
  if (code === 0) return
  const at = allocate(module, 8)
  module._OrtGetLastError(at, at + 4)
  const message = module.getValue(at + 4, '*')
  const words = message ? module.UTF8ToString(message) : 'The runtime does not say why.'
  module._free(at)
  throw new Error(`ERROR_CODE: ${code}, ERROR_MESSAGE: ${words}`)
}

/** A handle that the runtime gave; throws in its own words when that is none. */
export function given(module: HeapModule, handle: number): number {
  if (handle === 0) check(module, -1)
  return handle
}

/** Address of some bytes of its memory. Throws `unavailable` when there is no room. */
export function allocate(module: HeapModule, bytes: number): number {
  const address = module._malloc(Math.max(bytes, 8))
  if (address === 0) throw outOfMemory(`${bytes} bytes`)
  // Above 2 GiB an address is a negative number to JavaScript.
  return address >>> 0
}

/** Address of a text; to be freed. */
export function writeText(module: HeapModule, text: string): number {
  const bytes = module.lengthBytesUTF8(text) + 1
  const address = allocate(module, bytes)
  module.stringToUTF8(text, address, bytes)
  return address
}

/** Address of 32-bit numbers; to be freed. */
export function writeNumbers(module: HeapModule, numbers: readonly number[]): number {
  const address = allocate(module, 4 * numbers.length)
  numbers.forEach((number, index) => module.setValue(address + 4 * index, number, 'i32'))
  return address
}
