/**
 * Replaces look-ups in tables that are quantized in blocks. The builds of the runtime for WebGPU, one of
 * which also runs large models on the CPU, have no kernel of `GatherBlockQuantized` for the CPU (1.30).
 */
import {
  attribute,
  ELEMENT,
  type GraphFile,
  inlineField,
  integersField,
  type Node,
  nodeField,
  readGraphFile,
} from './graph-file.ts'
import type { GraphFiles } from './model-files.ts'
import { encode, type Fields, rewriteGraph } from './protobuf.ts'

/** Version of the standard operators from which all that replace a look-up exist. */
const MIN_OPSET = 13

/** A table whose rows are looked up. */
interface LookUp {
  node: Node
  bits: 4 | 8
  blockSize: number
  /** Dimensions of a row. */
  dims: readonly number[]
}

/** Resolves with the files of a graph without such look-ups; with the same files if it has none. */
export async function withPlainLookUps(files: GraphFiles): Promise<GraphFiles> {
  const graph = await readGraphFile(files)
  if (graph.opset < MIN_OPSET) return files
  const found = graph.nodes.flatMap((node) => toLookUp(graph, node) ?? [])
  if (found.length === 0) return files
  const replaced = new Map(found.map((lookUp) => [lookUp.node.from, lookUp] as const))
  const model = await rewriteGraph(
    files.model,
    async ({ from }) => {
      const lookUp = replaced.get(from)
      return lookUp ? [encode(toNodes(lookUp))] : null
    },
    [encode(found.flatMap(toConstants))],
  )
  return { ...files, model }
}

/** Attributes of `GatherBlockQuantized` with their defaults. */
const ATTRIBUTES = { gather_axis: 0, quantize_axis: 1, bits: 4, block_size: 128 }

/** Returns the look-up of a node; `null` for other nodes, and for a table in a form that is not understood. */
function toLookUp({ constants, ports }: GraphFile, node: Node): LookUp | null {
  const { attributes, inputs } = node
  if (node.kind !== 'GatherBlockQuantized' || node.domain !== 'com.microsoft') return null
  const valueOf = (name: keyof typeof ATTRIBUTES): number | null =>
    attributes.has(name) ? (attributes.get(name) ?? null) : ATTRIBUTES[name]
  const bits = valueOf('bits')
  const blockSize = valueOf('block_size') ?? 0
  if (valueOf('gather_axis') !== 0 || (bits !== 4 && bits !== 8) || blockSize < 2) return null
  const [values = '', , scales = '', zeroPoints = ''] = inputs
  const dimsOf = (name: string, type: number): readonly number[] | null => {
    const constant = ports.has(name) ? undefined : constants.get(name)
    return constant?.type === type ? constant.dims : null
  }
  const valueDims = dimsOf(values, ELEMENT.uint8)
  const scaleDims = dimsOf(scales, ELEMENT.float32)
  if (!valueDims || !scaleDims || valueOf('quantize_axis') !== valueDims.length - 1) return null
  // A byte has two integers of 4 bits. A row with a part of a block, or of a byte, is not understood.
  const perByte = 8 / bits
  const length = (valueDims.at(-1) ?? 0) * perByte
  if (length !== (scaleDims.at(-1) ?? 0) * blockSize) return null
  const zeroDims = zeroPoints === '' ? null : dimsOf(zeroPoints, ELEMENT.uint8)
  if (zeroPoints !== '' && (zeroDims?.at(-1) ?? 0) * perByte !== scaleDims.at(-1)) return null
  return { node, bits, blockSize, dims: [...valueDims.slice(1, -1), length] }
}

/** Returns the names of the new tensors of a look-up. */
const namesOf =
  ({ node: { outputs } }: LookUp) =>
  (step: string) =>
    `inorigin/${outputs[0]}/${step}`

/** Returns the nodes that look up whole rows of integers, scales and zero points, and join these. */
function toNodes(lookUp: LookUp): Fields {
  const { node, bits } = lookUp
  const [values = '', ids = '', scales = '', zeroPoints = ''] = node.inputs
  const at = namesOf(lookUp)
  const zeros = zeroPoints === '' ? [] : toIntegers(at, zeroPoints, 'zeros', bits)
  return [
    nodeField('Reshape', [ids, at('all')], [at('ids')]),
    ...toIntegers(at, values, 'values', bits),
    nodeField('Gather', [scales, at('ids')], [at('scales/rows')], attribute('axis', 0)),
    nodeField('Reshape', [at('scales/rows'), at('scales/shape')], [at('scales')]),
    ...zeros,
    nodeField('Sub', [at('values'), at('zeros')], [at('differences')]),
    nodeField('Mul', [at('differences'), at('scales')], [at('products')]),
    nodeField('Shape', [ids], [at('leading')]),
    nodeField('Concat', [at('leading'), at('row')], [at('shape')], attribute('axis', 0)),
    nodeField('Reshape', [at('products'), at('shape')], [...node.outputs]),
  ]
}

/** Returns the nodes that look up rows of integers as floats. A byte has two of 4 bits, the low half first. */
function toIntegers(
  at: (step: string) => string,
  table: string,
  step: 'values' | 'zeros',
  bits: LookUp['bits'],
): Fields {
  const own = (part: string): string => at(`${step}/${part}`)
  const toFloat = attribute('to', ELEMENT.float32)
  const whole = bits === 8 ? own('floats') : own('integers')
  return [
    nodeField('Gather', [table, at('ids')], [own('rows')], attribute('axis', 0)),
    nodeField('Cast', [own('rows')], [own('floats')], toFloat),
    ...(bits === 8
      ? []
      : [
          nodeField('Reshape', [own('floats'), at('bytes')], [own('bytes')]),
          nodeField('Mul', [own('bytes'), at('sixteenth')], [own('quotients')]),
          nodeField('Floor', [own('quotients')], [own('high')]),
          nodeField('Mul', [own('high'), at('sixteen')], [own('multiples')]),
          nodeField('Sub', [own('bytes'), own('multiples')], [own('low')]),
          nodeField('Concat', [own('low'), own('high')], [own('integers')], attribute('axis', 1)),
        ]),
    nodeField('Reshape', [whole, own('shape')], [at(step)]),
  ]
}

function toConstants(lookUp: LookUp): Fields {
  const { node, bits, blockSize, dims } = lookUp
  const at = namesOf(lookUp)
  const float = (name: string, value: number) =>
    inlineField(at(name), 'float32', [], Float32Array.of(value))
  const hasZeros = (node.inputs[3] ?? '') !== ''
  return [
    integersField(at('all'), -1),
    integersField(at('row'), ...dims),
    integersField(at('values/shape'), -1, blockSize),
    integersField(at('scales/shape'), -1, 1),
    // Without zero points, half the range of the integers means 0.
    hasZeros ? integersField(at('zeros/shape'), -1, 1) : float('zeros', 2 ** (bits - 1)),
    ...(bits === 4
      ? [integersField(at('bytes'), -1, 1), float('sixteenth', 1 / 16), float('sixteen', 16)]
      : []),
  ]
}
