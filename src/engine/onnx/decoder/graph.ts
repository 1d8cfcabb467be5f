/**
 * Reads the inputs and outputs of a decoder's graph. Exports differ in their inputs, in the names
 * and shapes of their caches, and in their precision.
 */
import type { InferenceSession, Tensor } from 'onnxruntime-web'
import { modelUnusable } from '../../failure.ts'
import type { Session } from '../runtime.ts'
import type { Operation } from '../graph-file.ts'
import { LONG_ROPE_INPUT } from '../rope-switch.ts'
import { AXES } from './positions.ts'

/** A cache of the graph: the tensor `output` of a run is the `input` of the next run. */
export interface CacheSpec {
  input: string
  output: string
  type: Tensor.Type
  /** Shape for one sequence, before the first token. */
  dims: readonly number[]
  /** Dimension that grows with each token; -1 for a state, which has no entry for each token. */
  axis: number
}

/** Inputs and outputs of a decoder's graph. */
export interface Graph {
  /** `true` if the graph takes token ids. */
  tokens: boolean
  /** Caches with an entry for each token (KV tensors). */
  kvCaches: readonly CacheSpec[]
  /** Caches without an entry for each token. */
  states: readonly CacheSpec[]
  /** Names of the inputs that a separate graph computes from the tokens. */
  embedded: readonly string[]
  /** `true` if the graph takes an attention mask. */
  attentionMask: boolean
  /**
   * Number of copies of the position ids along a leading dimension; 0 if there is no such
   * dimension. The field is `null` if the graph takes no position ids.
   */
  positions: { copies: number } | null
  /** Shape of the input with the number of logits to compute; `null` if all are computed. */
  logitsToKeep: readonly number[] | null
  /** Shape of the input that is true if there are past tokens; `null` if there is no such input. */
  cacheBranch: readonly number[] | null
  /** `true` if an input chooses the rotation factors of long sequences (`rope-switch.ts`). */
  longRope: boolean
  /** `true` if attention gets the length of KV caches, so that runs can update them in place. */
  grouped: boolean
  /** `true` if a batch may have sequences of different lengths. */
  ragged: boolean
}

/** Inputs and outputs of a graph, which need not be open. */
export type Ports = Pick<Session, 'inputs' | 'outputs'>

export interface GraphSources {
  /** Separate graph that computes embeddings from tokens, if there is one. */
  embed?: Ports
  /**
   * Nodes of the graph, from `readOperations`. Default: none, so that no attention counts as
   * grouped.
   */
  operations?: readonly Operation[]
  /** Number of attention heads in the model's configuration; some cache shapes depend on it. */
  heads?: number
}

type Metadata = InferenceSession.TensorValueMetadata

const KNOWN_INPUTS = new Set([
  'input_ids',
  'attention_mask',
  'position_ids',
  'num_logits_to_keep',
  'use_cache_branch',
  LONG_ROPE_INPUT,
])

const isCacheOutput = (output: string): boolean => output.startsWith('present')

/** Returns `true` for outputs of either graph that stay in GPU memory: all that are used. */
export const staysOnDevice = (output: string): boolean =>
  isCacheOutput(output) || output === 'logits' || EMBEDDING_OUTPUTS.has(output)

/** Returns `true` for outputs that stay in the heap: all but logits, which are read on the CPU. */
export const staysInHeap = (output: string): boolean => output !== 'logits' && staysOnDevice(output)

const EMBEDDING_OUTPUTS = new Set(['inputs_embeds', 'per_layer_inputs'])

/** Reads the graph. Throws `unavailable` if it is no text decoder or has an unsupported input. */
export function readGraph(session: Ports, sources: GraphSources = {}): Graph {
  const { embed, operations = [], heads } = sources
  const inputs = new Map(session.inputs.map((input) => [input.name, tensor(input)]))
  const outputs = session.outputs.map(({ name }) => name)
  if (!outputs.includes('logits')) {
    throw modelUnusable('it is not a text decoder: it has no output named logits.')
  }
  const embedded = embeddedInputs(inputs, embed)
  if (!inputs.has('input_ids') && !embedded.includes('inputs_embeds')) {
    const what = 'it is not a text decoder: it has no input named input_ids'
    throw modelUnusable(`${what}, and no other graph computes its inputs_embeds.`)
  }
  const produced = new Map(
    outputs.filter(isCacheOutput).map((output) => [cacheInputOf(output, inputs), output]),
  )
  const caches = [...inputs.values()]
    .filter(({ name }) => !KNOWN_INPUTS.has(name) && !embedded.includes(name))
    .map((input) => toCacheSpec(input, produced.get(input.name), heads))
  if (caches.length === 0) throw modelUnusable('it has no inputs for a KV cache.')
  const kvCaches = caches.filter(({ axis }) => axis >= 0)
  const states = caches.filter(({ axis }) => axis < 0)
  const positions = inputs.get('position_ids')?.shape
  const leading = positions?.[0]
  // A dimension without a size is that of the three axes.
  const copies = typeof leading === 'number' ? leading : AXES
  const grouped =
    kvCaches.length > 0 && kvCaches.every(({ input }) => isGroupedQueryInput(input, operations))
  return {
    tokens: inputs.has('input_ids'),
    kvCaches,
    states,
    embedded,
    attentionMask: inputs.has('attention_mask'),
    positions: positions ? { copies: positions.length > 2 ? copies : 0 } : null,
    logitsToKeep: scalarShape(inputs, 'num_logits_to_keep'),
    cacheBranch: scalarShape(inputs, 'use_cache_branch'),
    longRope: inputs.has(LONG_ROPE_INPUT),
    grouped,
    ragged: grouped && states.length === 0 && isMaskOnlyCounted(operations),
  }
}

function tensor(input: InferenceSession.ValueMetadata): Metadata {
  if (!input.isTensor) throw modelUnusable(`its input ${input.name} is not a tensor.`)
  return input
}

function embeddedInputs(inputs: ReadonlyMap<string, Metadata>, embed: Ports | undefined): string[] {
  if (!embed) return []
  const unknown = embed.inputs.find(({ name }) => name !== 'input_ids')
  if (unknown) throw unsupportedInput(unknown.name)
  return embed.outputs.map(({ name }) => name).filter((name) => inputs.has(name))
}

/**
 * Returns the input of a cache output: `past_key_values.0.key` for `present.0.key`, `past_conv.0`
 * for `present_conv.0`.
 */
function cacheInputOf(output: string, inputs: ReadonlyMap<string, unknown>): string {
  const named = output.replace('present_', 'past_')
  return inputs.has(named) ? named : output.replace('present', 'past_key_values')
}

function toCacheSpec(
  { name, type, shape }: Metadata,
  output: string | undefined,
  heads: number | undefined,
): CacheSpec {
  if (output === undefined) throw unsupportedInput(name)
  const sizes = shape.map((dimension) => sizeOf(dimension, heads))
  const growingAxes = sizes.flatMap((size, index) => (size === null ? [index] : []))
  const isKvCache = name.startsWith('past_key_values') && growingAxes.length === 1
  const dims = sizes.map((size) => size ?? 0)
  return { input: name, output, type, dims, axis: isKvCache ? (growingAxes[0] ?? -1) : -1 }
}

/** Returns a dimension's size for one sequence; `null` for a length, which starts at 0. */
function sizeOf(dimension: number | string, heads: number | undefined): number | null {
  if (typeof dimension === 'number') return dimension
  if (!dimension.startsWith('batch')) return null
  const factors = dimension.split(/\s*[x*]\s*/).slice(1)
  return factors.reduce((product, factor) => {
    const size = /head/.test(factor) ? heads : Number(factor)
    if (!size) throw modelUnusable(`the size of its cache dimension ${dimension} is unknown.`)
    return product * size
  }, 1)
}

const scalarShape = (inputs: ReadonlyMap<string, Metadata>, name: string): number[] | null =>
  inputs.get(name)?.shape.map(() => 1) ?? null

function isGroupedQueryInput(input: string, operations: readonly Operation[]): boolean {
  const users = operations.filter(({ inputs }) => inputs.includes(input))
  return users.length > 0 && users.every(({ kind }) => kind === 'GroupQueryAttention')
}

/**
 * Returns `true` if the graph uses the attention mask only to count tokens, so that shorter
 * sequences can be padded with zeros. A graph with branches is excluded, because a branch may
 * depend on the longest sequence.
 */
function isMaskOnlyCounted(operations: readonly Operation[]): boolean {
  const counts = (name: string): boolean => {
    const users = operations.filter(({ inputs }) => inputs.includes(name))
    return (
      users.length > 0 &&
      users.every(({ kind, outputs }) =>
        kind === 'Cast' ? outputs.every(counts) : kind === 'ReduceSum' || kind === 'Shape',
      )
    )
  }
  return counts('attention_mask') && operations.every(({ kind }) => kind !== 'If')
}

const unsupportedInput = (name: string): Error =>
  modelUnusable(`its input ${name} is not supported.`)
