/** A session whose inputs and outputs may stay in the memory of the WebAssembly runtime. */
import type { InferenceSession, Tensor } from 'onnxruntime-web'
import { typeName } from '../tensor.ts'
import type { Heap, HeapTensor } from './heap.ts'
import {
  allocate,
  assertHandle,
  assertOk,
  type HeapModule,
  LOG_LEVEL,
  readOutputs,
  writeNumbers,
  writeText,
} from './module.ts'

export interface HeapSession {
  readonly inputMetadata: readonly InferenceSession.ValueMetadata[]
  readonly outputMetadata: readonly InferenceSession.ValueMetadata[]
  /** Runs the graph as the runtime's session does. A fetch may be a heap tensor to write to. */
  run(
    feeds: Record<string, Tensor>,
    fetches: InferenceSession.FetchesType,
  ): Promise<Record<string, Tensor>>
  release(): Promise<void>
}

interface HeapSessionOptions {
  externalData: readonly { path: string; data: Blob }[]
  /** `true` if external data may be passed as a `Blob`. */
  streams: boolean
  /** Entries of the runtime's session configuration. */
  config: Readonly<Record<string, string>>
  /** Returns `true` for outputs that stay in the heap. */
  keeps(output: string): boolean
}

/** Optimization level of the runtime: all graph optimizations. */
const ALL_OPTIMIZATIONS = 99

/** Input or output of the graph. */
interface Port {
  /** Address of the name. */
  name: number
  metadata: InferenceSession.ValueMetadata
}

/** Loads a graph. Rejects with the runtime's message if it fails. */
export async function createHeapSession(
  heap: Heap,
  graph: ArrayBuffer,
  options: HeapSessionOptions,
): Promise<HeapSession> {
  const { module } = heap
  const session = await load(module, graph, options)
  const [inputs, outputs] = describe(module, session)

  const run: HeapSession['run'] = async (feeds, fetches) => {
    const requestedOutputs = fetchesOf(fetches)
    const { numbers, handleOf, free } = createRunMemory(heap)
    let settings = 0
    try {
      const fed = Object.entries(feeds)
      const inputNames = numbers(fed.map(([name]) => nameOf(inputs, name)))
      const inputValues = numbers(fed.map(([, tensor]) => handleOf(tensor)))
      const outputNames = numbers(requestedOutputs.map(([name]) => nameOf(outputs, name)))
      const preallocated = requestedOutputs.map(([, tensor]) => (tensor ? handleOf(tensor) : 0))
      const outputValues = numbers(preallocated)
      settings = assertHandle(module, module._OrtCreateRunOptions(LOG_LEVEL, 0, false, 0))
      const code = await module._OrtRun(
        session,
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
          const handle = module.getValue(outputValues + 4 * index, '*')
          const made = () => (options.keeps(name) ? heap.adopt(handle) : heap.copyOut(handle))
          return [name, tensor ?? made()]
        }),
      )
    } finally {
      if (settings !== 0) module._OrtReleaseRunOptions(settings)
      free()
    }
  }

  const release = async (): Promise<void> => {
    for (const { name } of [...inputs, ...outputs]) module._OrtFree(name)
    assertOk(module, module._OrtReleaseSession(session))
  }
  const metadata = (ports: readonly Port[]) => ports.map((port) => port.metadata)
  return { inputMetadata: metadata(inputs), outputMetadata: metadata(outputs), run, release }
}

interface RunMemory {
  /** Writes numbers into the heap. Returns their address. */
  numbers(values: readonly number[]): number
  /** Returns the handle of a tensor, which is copied into the heap if it is not there. */
  handleOf(tensor: Tensor): number
  /** Frees the numbers and the copies. */
  free(): void
}

/** Creates the memory that a run needs besides the tensors that stay in the heap. */
function createRunMemory(heap: Heap): RunMemory {
  const { module } = heap
  const copies: HeapTensor[] = []
  const addresses: number[] = []
  return {
    numbers(values) {
      const address = writeNumbers(module, values)
      addresses.push(address)
      return address
    },
    handleOf(tensor) {
      const found = heap.find(tensor)
      const heapTensor = found ?? heap.copyIn(tensor)
      if (!found) copies.push(heapTensor)
      return heapTensor.handle
    },
    free() {
      for (const heapTensor of copies) heap.free(heapTensor)
      for (const address of addresses) module._free(address)
    },
  }
}

async function load(
  module: HeapModule,
  graph: ArrayBuffer,
  { externalData, streams, config }: HeapSessionOptions,
): Promise<number> {
  const bytes = new Uint8Array(graph)
  for (const { path, data } of externalData) {
    module.mountExternalData(path, streams ? data : new Uint8Array(await data.arrayBuffer()))
  }
  const texts: number[] = []
  const settings = assertHandle(
    module,
    module._OrtCreateSessionOptions(
      ALL_OPTIMIZATIONS,
      false,
      false,
      0,
      false,
      0,
      0,
      LOG_LEVEL,
      0,
      0,
    ),
  )
  const address = allocate(module, bytes.length)
  try {
    for (const entry of Object.entries(config)) {
      const [key = 0, value = 0] = entry.map((text) => writeText(module, text))
      texts.push(key, value)
      assertOk(module, module._OrtAddSessionConfigEntry(settings, key, value))
    }
    module.HEAPU8.set(bytes, address)
    return assertHandle(module, await module._OrtCreateSession(address, bytes.length, settings))
  } finally {
    for (const each of [address, ...texts]) module._free(each)
    module._OrtReleaseSessionOptions(settings)
    module.unmountExternalData()
  }
}

function describe(module: HeapModule, session: number): [Port[], Port[]] {
  const [inputs = 0, outputs = 0] = readOutputs(module, 2, (at) =>
    module._OrtGetInputOutputCount(session, at, at + 4),
  )
  const ports = Array.from({ length: inputs + outputs }, (_, index) =>
    portOf(module, session, index),
  )
  return [ports.slice(0, inputs), ports.slice(inputs)]
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

function fetchesOf(fetches: InferenceSession.FetchesType): [string, Tensor | null][] {
  if (Array.isArray(fetches)) return fetches.map((name: string) => [name, null])
  return Object.entries(fetches as Record<string, Tensor | null>)
}

function nameOf(ports: readonly Port[], name: string): number {
  const found = ports.find(({ metadata }) => metadata.name === name)
  if (!found) throw new Error(`The graph has no input or output named ${name}.`)
  return found.name
}
