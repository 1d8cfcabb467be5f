/**
 * Builds the graph of a decoder from a GGUF file. All architectures have the same blocks: attention
 * or a convolution, then a feed-forward layer, each with norms before or after it and a residual.
 * The tensors of a block show which parts it has.
 */
import { branchOf, type GraphBuilder } from './graph-builder.ts'
import { computeTable, type Rope, yarnDivisors } from './rope.ts'
import { type DecoderShape, EMBEDDINGS, type Layer } from './shape.ts'
import type { MatrixUse, Weights } from './weights.ts'

/** Divisors of rotation frequencies, which a file may have as tensors. */
export interface RopeFactors {
  /** For sequences of any length; `null` if the file has none. */
  all: Float32Array | null
  /** For short sequences and for long ones; `null` if the file has none. */
  long: { short: Float32Array; long: Float32Array } | null
}

/** A decoder to build. */
export interface DecoderSetup {
  graph: GraphBuilder
  weights: Weights
  shape: DecoderShape
  factors: RopeFactors
  /** Greatest number of tokens of a sequence. */
  contextTokens: number
}

/** The values between two blocks, of which the last sum may not have been computed yet. */
interface Stream {
  value: string
  /** Values that are added to the others before the next norm. */
  added: string | null
}

/** Adds the whole decoder to the graph. */
export function buildDecoder(setup: DecoderSetup): void {
  const { graph, weights, shape } = setup
  const { hidden, vocabulary, embeddingScale, logitDivisor } = shape
  const ids = graph.input('input_ids', 'int64', ['batch_size', 'sequence_length'])
  const block = new BlockBuilder(setup, addLengths(graph))
  const embedded = weights.lookUp(ids, { tensor: EMBEDDINGS, columns: hidden, rows: vocabulary })
  let stream: Stream = { value: scale(graph, embedded, embeddingScale), added: null }
  for (const [index, layer] of shape.layers.entries()) stream = block.add(stream, layer, index)

  const normed = block.norm(stream, shape.lastNorm).value
  // A prompt needs the logits of its last tokens only.
  const wanted = graph.input('num_logits_to_keep', 'int64', [1])
  const from = graph.node('Neg', [wanted])
  const [end, axis] = [graph.integers([2 ** 40]), graph.integers([1])]
  const kept = graph.node('Slice', [normed, from, end, axis])
  const head = weights.has('output.weight') ? 'output.weight' : EMBEDDINGS
  const logits = weights.multiply(kept, { tensor: head, columns: hidden, rows: vocabulary })
  const divisor = logitDivisor === 1 ? [] : [graph.float(logitDivisor)]
  graph.node(divisor.length > 0 ? 'Div' : 'Identity', [logits, ...divisor], { outputs: ['logits'] })
  graph.output('logits', 'float32', ['batch_size', 'logits_length', vocabulary])
}

/** Names of the lengths that attention gets. */
interface Lengths {
  /** Number of tokens of each sequence less 1. */
  last: string
  /** Number of tokens of the longest sequence. */
  total: string
}

function addLengths(graph: GraphBuilder): Lengths {
  const mask = graph.input('attention_mask', 'int64', ['batch_size', 'total_sequence_length'])
  const attributes = { keepdims: 0 }
  const counts = graph.node('ReduceSum', [mask, graph.integers([1])], { attributes })
  const last = graph.node('Sub', [counts, graph.integers([1])])
  const dims = graph.node('Shape', [mask])
  const total = graph.node('Gather', [dims, graph.integers([1], { scalar: true })])
  const toInt32 = { attributes: { to: 6 } }
  return { last: graph.node('Cast', [last], toInt32), total: graph.node('Cast', [total], toInt32) }
}

/** Multiplies by a number. */
const scale = (graph: GraphBuilder, value: string, factor: number): string =>
  factor === 1 ? value : graph.node('Mul', [value, graph.float(factor)])

/** Builds the blocks of a decoder. */
class BlockBuilder {
  readonly #graph: GraphBuilder
  readonly #weights: Weights
  readonly #shape: DecoderShape
  readonly #setup: DecoderSetup
  readonly #lengths: Lengths
  /** Tables of cosines and sines by the base of their frequencies and their scaling. */
  readonly #ropes = new Map<string, readonly [cos: string, sin: string]>()

  constructor(setup: DecoderSetup, lengths: Lengths) {
    this.#graph = setup.graph
    this.#weights = setup.weights
    this.#shape = setup.shape
    this.#setup = setup
    this.#lengths = lengths
  }

  /** Adds a block. Returns the values behind it. */
  add(stream: Stream, layer: Layer, index: number): Stream {
    const name = `blk.${index}`
    const mixed = this.#residual(
      stream,
      [`${name}.attn_norm`, `${name}.post_attention_norm`],
      (input) =>
        layer.kvHeads > 0 ? this.#attention(input, layer, index) : this.#convolution(input, index),
    )
    return this.#residual(mixed, [`${name}.ffn_norm`, `${name}.post_ffw_norm`], (input) =>
      this.#feedForward(input, name),
    )
  }

  /** Adds a part of a block, with a norm before it or after it or both, to the values before it. */
  #residual(
    stream: Stream,
    [before, after]: readonly [before: string, after: string],
    compute: (input: string) => string,
  ): Stream {
    const { value: input, sum } = this.#weights.has(`${before}.weight`)
      ? this.norm(stream, before)
      : this.#plain(stream)
    const computed = compute(input)
    const result = this.#weights.has(`${after}.weight`)
      ? this.norm({ value: computed, added: null }, after).value
      : computed
    return { value: sum, added: scale(this.#graph, result, this.#shape.residualScale) }
  }

  #plain({ value, added }: Stream): { value: string; sum: string } {
    const sum = added === null ? value : this.#graph.node('Add', [value, added])
    return { value: sum, sum }
  }

  /** Adds a norm of the sum of the values. Returns its output, and the sum. */
  norm({ value, added }: Stream, name: string): { value: string; sum: string } {
    const weight = this.#weights.floats(`${name}.weight`, [this.#shape.hidden])
    if (added === null) return { value: this.#normOf(value, weight), sum: value }
    const sum = `${name}/sum`
    const outputs = [`${name}/output`, '', '', sum]
    const attributes = { epsilon: { float: this.#shape.epsilon } }
    const kind = 'SkipSimplifiedLayerNormalization'
    const inputs = [value, added, weight]
    const normed = this.#graph.node(kind, inputs, { outputs, attributes, contrib: true })
    return { value: normed, sum }
  }

  #normOf(value: string, weight: string): string {
    const attributes = { epsilon: { float: this.#shape.epsilon } }
    return this.#graph.node('SimplifiedLayerNormalization', [value, weight], { attributes })
  }

  #attention(input: string, layer: Layer, index: number): string {
    const { heads, headSize, hidden, attentionScale } = this.#shape
    const { kvHeads, window } = layer
    const name = `blk.${index}.attn`
    const [queries, keys] = [heads * headSize, kvHeads * headSize]
    // Some files have one matrix for all three.
    const isJoint = this.#weights.has(`${name}_qkv.weight`)
    const project = (letter: 'q' | 'k' | 'v', from: number, count: number): string => {
      const interleaved = this.#shape.interleaved && letter !== 'v' ? headSize : undefined
      const use = isJoint
        ? { tensor: `${name}_qkv`, rows: queries + 2 * keys, part: { from, count } }
        : { tensor: `${name}_${letter}`, rows: count }
      const product = this.#linear(input, { ...use, columns: hidden, interleaved })
      return letter === 'v' ? product : this.#headNorm(product, `${name}_${letter}_norm`, count)
    }
    const [query, key, value] = [
      project('q', 0, queries),
      project('k', queries, keys),
      project('v', queries + keys, keys),
    ]
    const caches = (['key', 'value'] as const).map((kind) => {
      const dims = ['batch_size', kvHeads, 'past_sequence_length', headSize]
      const present = `present.${index}.${kind}`
      const after = ['batch_size', kvHeads, 'total_sequence_length', headSize]
      this.#graph.output(present, 'float32', after)
      return {
        past: this.#graph.input(`past_key_values.${index}.${kind}`, 'float32', dims),
        present,
      }
    })
    const ropes = this.#rope(layer)
    const { last, total } = this.#lengths
    const pasts = caches.map(({ past }) => past)
    const inputs = [query, key, value, ...pasts, last, total, ...(ropes ?? [])]
    const output = this.#graph.node('GroupQueryAttention', inputs, {
      attributes: {
        num_heads: heads,
        kv_num_heads: kvHeads,
        scale: { float: attentionScale },
        do_rotary: ropes ? 1 : 0,
        ...(window !== null && { local_window_size: window }),
      },
      outputs: [`${name}/output`, ...caches.map(({ present }) => present)],
      contrib: true,
    })
    return this.#linear(output, { tensor: `${name}_output`, columns: queries, rows: hidden })
  }

  /** Adds a norm of each head, or of all heads together, if the file has one. */
  #headNorm(value: string, name: string, size: number): string {
    if (!this.#weights.has(`${name}.weight`)) return value
    const { headSize } = this.#shape
    const isWhole = this.#weights.sizeOf(`${name}.weight`) !== headSize
    const weight = this.#weights.floats(`${name}.weight`, [isWhole ? size : headSize])
    if (isWhole) return this.#normOf(value, weight)
    const apart = [0, 0, size / headSize, headSize]
    const heads = this.#graph.node('Reshape', [value, this.#graph.integers(apart)])
    const joint = this.#graph.integers([0, 0, size])
    return this.#graph.node('Reshape', [this.#normOf(heads, weight), joint])
  }

  /** Adds a short convolution along the tokens, between two gates. */
  #convolution(input: string, index: number): string {
    const { hidden, convolution } = this.#shape
    const name = `blk.${index}.shortconv`
    const project = (part: number): string =>
      this.#linear(input, {
        tensor: `${name}.in_proj`,
        columns: hidden,
        rows: 3 * hidden,
        part: { from: part * hidden, count: hidden },
      })
    const gated = this.#graph.node('Mul', [project(0), project(2)])
    const attributes = { perm: { integers: [0, 2, 1] } }
    const rows = this.#graph.node('Transpose', [gated], { attributes })
    const dims = ['batch_size', hidden, convolution - 1]
    const past = this.#graph.input(`past_conv.${index}`, 'float32', dims)
    const whole = this.#graph.node('Concat', [past, rows], { attributes: { axis: 2 } })
    const [from, end] = [this.#graph.integers([1 - convolution]), this.#graph.integers([2 ** 40])]
    const present = `present_conv.${index}`
    const axis = this.#graph.integers([2])
    this.#graph.node('Slice', [whole, from, end, axis], { outputs: [present] })
    this.#graph.output(present, 'float32', dims)
    const shape = [convolution, hidden]
    const kernel = { dims: [hidden, 1, convolution] }
    const weight = this.#weights.floats(`${name}.conv.weight`, shape, kernel)
    const group = { attributes: { group: hidden } }
    const convolved = this.#graph.node('Conv', [whole, weight], group)
    const columns = this.#graph.node('Transpose', [convolved], { attributes })
    const output = this.#graph.node('Mul', [project(1), columns])
    return this.#linear(output, { tensor: `${name}.out_proj`, columns: hidden, rows: hidden })
  }

  #feedForward(input: string, block: string): string {
    const { hidden, feedForward, gelu } = this.#shape
    // Some files have one matrix for both.
    const isJoint = !this.#weights.has(`${block}.ffn_gate.weight`)
    const project = (name: 'gate' | 'up', from: number): string =>
      this.#linear(input, {
        columns: hidden,
        ...(isJoint
          ? {
              tensor: `${block}.ffn_up`,
              rows: 2 * feedForward,
              part: { from, count: feedForward },
            }
          : { tensor: `${block}.ffn_${name}`, rows: feedForward }),
      })
    const gate = project('gate', 0)
    const active = gelu
      ? this.#graph.node('FastGelu', [gate], { contrib: true })
      : this.#graph.node('Mul', [gate, this.#graph.node('Sigmoid', [gate])])
    const middle = this.#graph.node('Mul', [active, project('up', feedForward)])
    return this.#linear(middle, { tensor: `${block}.ffn_down`, columns: feedForward, rows: hidden })
  }

  /** Multiplies by a matrix, and adds a bias if the file has one. `tensor` is their common name. */
  #linear(input: string, use: MatrixUse): string {
    const { tensor, rows, part, interleaved } = use
    const product = this.#weights.multiply(input, { ...use, tensor: `${tensor}.weight` })
    if (!this.#weights.has(`${tensor}.bias`)) return product
    const bias = this.#weights.floats(`${tensor}.bias`, [rows], { part, interleaved })
    return this.#graph.node('Add', [product, bias])
  }

  /** Returns the tables of cosines and sines of a layer; `null` if it has no rope. */
  #rope({ ropeBase, scalesRope }: Layer): readonly [cos: string, sin: string] | null {
    if (ropeBase === null) return null
    const key = `rope/${ropeBase}${scalesRope ? '' : '/unscaled'}`
    const known = this.#ropes.get(key)
    if (known) return known
    const { contextTokens: tokens } = this.#setup
    const rope: Rope = { size: this.#shape.ropeSize, base: ropeBase, divisors: 1, scale: 1, tokens }
    const tables = scalesRope ? this.#scaledRope(key, rope) : this.#tables(key, rope)
    this.#ropes.set(key, tables)
    return tables
  }

  /** Adds the tables of a rope that is scaled as the metadata and the tensors of factors say. */
  #scaledRope(key: string, rope: Rope): readonly [cos: string, sin: string] {
    const { all, long } = this.#setup.factors
    const { divisor, attentionFactor, yarn } = this.#shape.ropeScaling
    if (long) return this.#longRope(key, { ...rope, scale: attentionFactor }, long)
    if (!yarn) return this.#tables(key, { ...rope, divisors: all ?? divisor })
    const divisors = yarnDivisors(rope.size, rope.base, yarn)
    return this.#tables(key, { ...rope, divisors, scale: attentionFactor })
  }

  /** Adds tables, and a choice between those of short sequences and those of long ones. */
  #longRope(
    key: string,
    rope: Rope,
    { short, long }: NonNullable<RopeFactors['long']>,
  ): readonly [cos: string, sin: string] {
    const { originalTokens } = this.#shape.ropeScaling
    const shortRope = { ...rope, divisors: short, tokens: Math.min(originalTokens, rope.tokens) }
    const shortTables = this.#tables(`${key}/short`, shortRope)
    if (rope.tokens <= originalTokens) return shortTables
    const longTables = this.#tables(`${key}/long`, { ...rope, divisors: long })
    const limit = this.#graph.integers([originalTokens], { scalar: true })
    const total = this.#graph.node('Cast', [this.#lengths.total], { attributes: { to: 7 } })
    const isLong = this.#graph.node('Greater', [total, limit])
    const outputs = [`${key}/cos`, `${key}/sin`] as const
    const branch = (tables: readonly [string, string], name: string) => ({
      graph: branchOf(tables.map((table, index) => [table, `${outputs[index]}/${name}`] as const)),
    })
    const attributes = {
      then_branch: branch(longTables, 'then'),
      else_branch: branch(shortTables, 'else'),
    }
    this.#graph.node('If', [isLong], { attributes, outputs })
    return outputs
  }

  #tables(key: string, rope: Rope): readonly [cos: string, sin: string] {
    const dims = [rope.tokens, rope.size / 2]
    const table = (name: 'cos' | 'sin'): string =>
      this.#weights.computed(`${key}/${name}_cache`, dims, () => computeTable(rope, Math[name]))
    return [table('cos'), table('sin')]
  }
}
