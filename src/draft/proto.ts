/** Field and type numbers of onnx.proto that are needed to draft a signature. */

export const MODEL = { irVersion: 1, graph: 7, opset: 8, function: 25 }
export const OPSET = { domain: 1, version: 2 }
export const GRAPH = {
  node: 1,
  initializer: 5,
  description: 10,
  input: 11,
  output: 12,
  sparseInitializer: 15,
}
export const FUNCTION = { node: 7 }
export const NODE = { attribute: 5 }
export const ATTRIBUTE = { name: 1, integer: 3, tensor: 5, graph: 6, tensors: 10, graphs: 11 }
export const TENSOR = { dimensions: 1, type: 2, name: 8, external: 13 }
export const SPARSE = { values: 1, indices: 2 }
export const ENTRY = { key: 1, value: 2 }
export const VALUE = { name: 1, type: 2, description: 3 }
export const TYPE = { tensor: 1, sequence: 4, map: 5, sparse: 8, optional: 9 }
export const TENSOR_TYPE = { element: 1, shape: 2 }
export const SHAPE = { dimension: 1 }
export const DIMENSION = { length: 1, name: 2 }

/** Element types by their number. */
export const ELEMENTS = [
  'undefined',
  'float32',
  'uint8',
  'int8',
  'uint16',
  'int16',
  'int32',
  'int64',
  'string',
  'bool',
  'float16',
  'float64',
  'uint32',
  'uint64',
  'complex64',
  'complex128',
  'bfloat16',
  'float8e4m3fn',
  'float8e4m3fnuz',
  'float8e5m2',
  'float8e5m2fnuz',
  'uint4',
  'int4',
  'float4e2m1',
  'float8e8m0',
  'uint2',
  'int2',
] as const

/** Types that are not tensors, by the field of their type. */
export const OTHERS: Readonly<Record<number, string>> = {
  [TYPE.sequence]: 'a sequence',
  [TYPE.map]: 'a map',
  [TYPE.sparse]: 'a sparse tensor',
  [TYPE.optional]: 'an optional value',
}
