/** The graph of a Llama decoder, as exports for hubs have it. */
import type { Element, Graph, Operator, Port } from '../../support/onnx.ts'
import { float, gather, type Matrix, multiply, type Part } from './linear.ts'
import type { OnnxFormat, Shape } from './shapes.ts'
import { drawWeights, type WeightKind } from './weights.ts'

const EPSILON = 1e-5

/** Takes the graph's weights one after the other, so that no more than one is in memory. */
export type OnWeights = (weights: Part['weights']) => void

/** Returns the graph without its weights. */
export function createDecoderGraph(
  shape: Shape,
  format: OnnxFormat,
  onWeights: OnWeights,
): Omit<Graph, 'weights'> {
  const steps = createSteps(format, onWeights)
  const { heads, kvHeads, head, hidden, feedForward, vocabulary, context, layers } = shape
  addLengths(steps)
  steps.float('cos', 'cos', context, head / 2)
  steps.float('sin', 'sin', context, head / 2)
  steps.gather('embed', vocabulary, hidden, 'input_ids', 'x0')
  steps.norm('n0', ['x0'], hidden)
  for (let layer = 0; layer < layers; layer += 1) {
    const name = (part: string): string => `${part}${layer}`
    const [normed, stream] = [name('n'), name('x')]
    for (const [part, count] of [
      ['q', heads],
      ['k', kvHeads],
      ['v', kvHeads],
    ] as const) {
      steps.multiply(name(part), hidden, count * head, normed, `${name(part)}.y`)
    }
    const past = ['key', 'value'].map((part) => `past_key_values.${layer}.${part}`)
    const present = ['key', 'value'].map((part) => `present.${layer}.${part}`)
    steps.add({
      type: 'GroupQueryAttention',
      domain: 'com.microsoft',
      inputs: [
        ...['q', 'k', 'v'].map((part) => `${name(part)}.y`),
        ...past,
        'seqlens',
        'total',
        'cos',
        'sin',
      ],
      outputs: [name('a'), ...present],
      attributes: { num_heads: heads, kv_num_heads: kvHeads, do_rotary: 1 },
    })
    steps.multiply(name('o'), heads * head, hidden, name('a'), `${name('o')}.y`)
    steps.norm(name('m'), [stream, `${name('o')}.y`], hidden, name('s'))
    for (const part of ['gate', 'up']) {
      steps.multiply(name(part), hidden, feedForward, name('m'), `${name(part)}.y`)
    }
    const gate = `${name('gate')}.y`
    steps.add({ type: 'Sigmoid', inputs: [gate], outputs: [name('sigmoid')] })
    steps.add({ type: 'Mul', inputs: [gate, name('sigmoid')], outputs: [name('silu')] })
    steps.add({ type: 'Mul', inputs: [name('silu'), `${name('up')}.y`], outputs: [name('f')] })
    steps.multiply(name('down'), feedForward, hidden, name('f'), name('d'))
    steps.norm(`n${layer + 1}`, [name('s'), name('d')], hidden, `x${layer + 1}`)
  }
  addLogits(steps, shape)
  return { nodes: steps.nodes, ...listPorts(shape, steps.element) }
}

type Steps = ReturnType<typeof createSteps>

function createSteps(format: OnnxFormat, onWeights: OnWeights) {
  const nodes: Operator[] = []
  const made = new Set<string>()
  /** Adds an operator, unless its output is there: matrices share what quantizes their input. */
  const add = (node: Operator): void => {
    const [first = ''] = node.outputs
    if (!made.has(first)) nodes.push(node)
    made.add(first)
  }
  const addPart = (part: Part): void => {
    onWeights(part.weights)
    part.nodes.forEach(add)
  }
  const draw = (name: string, kind: WeightKind, rows: number, columns: number): Matrix => ({
    name,
    values: drawWeights(name, kind, rows, columns),
    rows,
    columns,
  })
  const floats = (name: string, kind: WeightKind, rows: number, columns: number): void => {
    const shape = rows === 1 ? [columns] : [rows, columns]
    onWeights([float(format, name, drawWeights(name, kind, rows, columns), shape)])
  }
  return {
    nodes,
    add,
    element: (format === 'q4f16' ? 'float16' : 'float32') satisfies Element as Element,
    float: floats,
    integers(name: string, values: bigint[], shape: number[]): void {
      onWeights([{ name, type: 'int64', shape, data: BigInt64Array.from(values) }])
    },
    gather(name: string, rows: number, columns: number, input: string, output: string): void {
      addPart(gather(format, draw(name, 'normal', rows, columns), input, output))
    },
    multiply(
      name: string,
      rows: number,
      columns: number,
      input: string,
      output: string,
      kind: WeightKind = 'normal',
    ): void {
      addPart(multiply(format, draw(name, kind, rows, columns), input, output))
    },
    /** Normalizes the input, or the sum of two, which is the output `sum`. */
    norm(output: string, inputs: readonly string[], hidden: number, sum?: string): void {
      floats(`${output}.norm`, 'one', 1, hidden)
      const layer = 'SimplifiedLayerNormalization'
      const shared = { inputs: [...inputs, `${output}.norm`], attributes: { epsilon: EPSILON } }
      if (sum === undefined) add({ type: layer, ...shared, outputs: [output] })
      else {
        const outputs = [output, '', '', sum]
        add({ type: `Skip${layer}`, domain: 'com.microsoft', ...shared, outputs })
      }
    },
  }
}

/** Lengths of the sequences and of the longest, which attention reads. */
function addLengths({ add, integers }: Steps): void {
  integers('one', [1n], [1])
  integers('second', [1n], [])
  const toInt32 = { to: 6 }
  add({
    type: 'ReduceSum',
    inputs: ['attention_mask', 'one'],
    outputs: ['mask_sum'],
    attributes: { keepdims: 0 },
  })
  add({ type: 'Sub', inputs: ['mask_sum', 'one'], outputs: ['mask_less'] })
  add({ type: 'Cast', inputs: ['mask_less'], outputs: ['seqlens'], attributes: toInt32 })
  add({ type: 'Shape', inputs: ['attention_mask'], outputs: ['mask_shape'] })
  add({
    type: 'Gather',
    inputs: ['mask_shape', 'second'],
    outputs: ['total64'],
    attributes: { axis: 0 },
  })
  add({ type: 'Cast', inputs: ['total64'], outputs: ['total'], attributes: toInt32 })
}

/** Logits of the last `num_logits_to_keep` positions. */
function addLogits(steps: Steps, { hidden, vocabulary, layers }: Shape): void {
  const { add, integers, element } = steps
  integers('zero', [0n], [1])
  integers('end', [2n ** 31n - 1n], [1])
  add({ type: 'Reshape', inputs: ['num_logits_to_keep', 'one'], outputs: ['kept_count'] })
  add({ type: 'Sub', inputs: ['zero', 'kept_count'], outputs: ['keep_from'] })
  const kept = [`n${layers}`, 'keep_from', 'end', 'one']
  add({ type: 'Slice', inputs: kept, outputs: ['kept_states'] })
  const output = element === 'float32' ? 'logits' : 'half_logits'
  steps.multiply('head', hidden, vocabulary, 'kept_states', output, 'head')
  if (output !== 'logits') {
    add({ type: 'Cast', inputs: [output], outputs: ['logits'], attributes: { to: 1 } })
  }
}

function listPorts(shape: Shape, element: Element): Pick<Graph, 'inputs' | 'outputs'> {
  const caches = (name: string, length: string): Port[] =>
    Array.from({ length: shape.layers }, (_, layer) =>
      ['key', 'value'].map((part) => ({
        name: `${name}.${layer}.${part}`,
        type: element,
        shape: ['batch_size', shape.kvHeads, `${length}_sequence_length`, shape.head],
      })),
    ).flat()
  const logits = ['batch_size', 'kept', shape.vocabulary]
  const tokens = ['batch_size', 'sequence_length']
  const mask = ['batch_size', 'total_sequence_length']
  return {
    inputs: [
      { name: 'input_ids', type: 'int64', shape: tokens },
      { name: 'attention_mask', type: 'int64', shape: mask },
      { name: 'num_logits_to_keep', type: 'int64', shape: [] },
      ...caches('past_key_values', 'past'),
    ],
    outputs: [{ name: 'logits', type: 'float32', shape: logits }, ...caches('present', 'total')],
  }
}
