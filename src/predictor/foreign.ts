/** Finds inputs and outputs of a model whose type the runtime does not support in JavaScript. */
import { createWindow, type Field, fieldsOf, fieldsOfFile } from '../engine/onnx/protobuf.ts'

/** Numbers of protobuf fields in onnx.proto. */
const MODEL_GRAPH = 7
const SIDES = new Map([
  [11, 'inputs'],
  [12, 'outputs'],
])
const VALUE = { name: 1, type: 2 }
const TYPE_TENSOR = 1
const TENSOR_ELEMENT = 1

/** Names of the unsupported types by their numbers. All types with lower numbers are supported. */
const FOREIGN = new Map([
  [14, 'complex64'],
  [15, 'complex128'],
  [16, 'bfloat16'],
  [17, 'float8e4m3fn'],
  [18, 'float8e4m3fnuz'],
  [19, 'float8e5m2'],
  [20, 'float8e5m2fnuz'],
  [21, 'uint4'],
  [22, 'int4'],
  [23, 'float4e2m1'],
  [24, 'float8e8m0'],
  [25, 'uint2'],
  [26, 'int2'],
])

/** Input or output with an unsupported type. */
export interface ForeignTensor {
  side: string
  name: string
  type: string
}

/** Resolves with the first such tensor, or `null` if there is none or the file is not a model. */
export async function findForeign(model: Blob): Promise<ForeignTensor | null> {
  const file = createWindow(model)
  for await (const graph of fieldsOfFile(file, 0, model.size)) {
    if (graph.number !== MODEL_GRAPH) continue
    for await (const { number, from, to } of fieldsOfFile(file, graph.from, graph.to)) {
      const side = SIDES.get(number)
      if (!side) continue
      const value = await file.read(from, to)
      const type = FOREIGN.get(elementOf(value))
      if (type) return { side, name: new TextDecoder().decode(inside(value, VALUE.name)), type }
    }
  }
  return null
}

/** Returns the number of a tensor's element type, or 0 if the value is not a tensor. */
function elementOf(value: Uint8Array): number {
  const tensor = inside(inside(value, VALUE.type), TYPE_TENSOR)
  return inside(tensor, TENSOR_ELEMENT)[0] ?? 0
}

function inside(bytes: Uint8Array, wanted: number): Uint8Array {
  const found = [...fieldsOf(bytes)].find(({ number }: Field) => number === wanted)
  return found ? bytes.subarray(found.from, found.to) : new Uint8Array(0)
}
