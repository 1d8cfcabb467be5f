/** Finds inputs and outputs of a model whose type the runtime does not support in JavaScript. */
import { createWindow, type Field, fieldsOf, fieldsOfGraph } from '../engine/onnx/protobuf.ts'

/** Numbers of protobuf fields in onnx.proto. */
const GRAPH_SIDES = new Map([
  [11, 'inputs'],
  [12, 'outputs'],
])
const VALUE_FIELDS = { name: 1, type: 2 }
const TYPE_TENSOR = 1
const TENSOR_ELEMENT = 1

/** Names of the unsupported types by their numbers. All types with lower numbers are supported. */
const UNSUPPORTED_TYPES = new Map([
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
interface UnsupportedTensor {
  side: string
  name: string
  type: string
}

/** Resolves with the first such tensor, or `null` if there is none or the file is not a model. */
export async function findUnsupportedTensor(model: Blob): Promise<UnsupportedTensor | null> {
  const file = createWindow(model)
  for await (const { number, from, to } of fieldsOfGraph(file, model.size)) {
    const side = GRAPH_SIDES.get(number)
    if (!side) continue
    const value = await file.read(from, to)
    const type = UNSUPPORTED_TYPES.get(getElementType(value))
    if (type)
      return { side, name: new TextDecoder().decode(getField(value, VALUE_FIELDS.name)), type }
  }
  return null
}

/** Returns the number of a tensor's element type, or 0 if the value is not a tensor. */
function getElementType(value: Uint8Array): number {
  const tensor = getField(getField(value, VALUE_FIELDS.type), TYPE_TENSOR)
  return getField(tensor, TENSOR_ELEMENT)[0] ?? 0
}

function getField(bytes: Uint8Array, wanted: number): Uint8Array {
  const found = [...fieldsOf(bytes)].find(({ number }: Field) => number === wanted)
  return found ? bytes.subarray(found.from, found.to) : new Uint8Array(0)
}
