/**
 * Reads the inputs and outputs of a decoder's graph. Exports differ in their inputs, in the names
 * and shapes of their caches, and in their precision.
 */
import type { InferenceSession, Tensor } from 'onnxruntime-web'
import { modelUnusable } from '../../failure.ts'
import type { Session } from '../runtime.ts'
import type { Operation } from '../graph-file.ts'
import { LAST_POSITIONS_INPUT, LOGIT_ROWS_INPUT, LONGEST_INPUT } from '../capture-inputs.ts'
import { LONG_ROPE_INPUT } from '../rope-switch.ts'
import { product } from '../tensor.ts'
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

/** Type of an input of integers. Most exports take int64. */
export type IntegerType = 'int32' | 'int64'

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
  /** Types of the tokens, the attention mask and the position ids, by the names of their inputs. */
  integers: ReadonlyMap<string, IntegerType>
  /** `true` if the graph takes an attention mask. */
  attentionMask: boolean
  /**
   * Number of copies of the position ids along a leading dimension; 0 if there is no such
   * dimension. The field is `null` if the graph takes no position ids.
   */
  positions: { copies: number } | null
  /** `true` if the graph takes the lengths of sequences in place of a mask (`capture-inputs.ts`). */
  lengths: boolean
  /** `true` if the graph takes the positions of the tokens whose logits are wanted. */
  logitRows: boolean
  /** Shape of the input with the number of logits to compute; `null` if there is no such input. */
  logitsToKeep: readonly number[] | null
  /** `true` if the graph returns the logits of the last token only. */
  lastLogits: boolean
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
  /** Sizes in the model's configuration, on which some cache shapes depend. */
  heads?: number | undefined
  kvHeads?: number | undefined
  headSize?: number | undefined
}

type HeadSizes = Pick<GraphSources, 'heads' | 'kvHeads' | 'headSize'>

type Metadata = InferenceSession.TensorValueMetadata

const KNOWN_INPUTS = new Set([
  'input_ids',
  'attention_mask',
  'position_ids',
  'num_logits_to_keep',
  'use_cache_branch',
  LAST_POSITIONS_INPUT,
  LONGEST_INPUT,
  LOGIT_ROWS_INPUT,
  LONG_ROPE_INPUT,
])

/** Part of the names of caches: `past_key_values.0.key`, `past.0.conv`, `present_conv.0`. */
const PAST = /(?<![a-z])past(?:_key_values)?(?![a-z])/i
const PRESENT = /(?<![a-z])present(?:_key_values)?(?![a-z])/i

const isCacheOutput = (output: string): boolean => PRESENT.test(output)

/** Returns `true` for outputs of either graph that stay in GPU memory: all that are used. */
export const staysOnDevice = (output: string): boolean =>
  isCacheOutput(output) || output === 'logits' || EMBEDDING_OUTPUTS.has(output)

/** Returns `true` for outputs that stay in the heap: all but logits, which are read on the CPU. */
export const staysInHeap = (output: string): boolean => output !== 'logits' && staysOnDevice(output)

const EMBEDDING_OUTPUTS = new Set(['inputs_embeds', 'per_layer_inputs'])

/** Reads the graph. Throws `unavailable` if it is no text decoder or has an unsupported input. */
export function readGraph(session: Ports, sources: GraphSources = {}): Graph {
  const { embed, operations = [] } = sources
  const inputs = new Map(session.inputs.map((input) => [input.name, tensor(input)]))
  const logits = session.outputs.find(({ name }) => name === 'logits')
  if (!logits) {
    throw modelUnusable('it is not a text decoder: it has no output named logits.')
  }
  const embedded = embeddedInputs(inputs, embed)
  if (!inputs.has('input_ids') && !embedded.includes('inputs_embeds')) {
    const what = 'it is not a text decoder: it has no input named input_ids'
    throw modelUnusable(`${what}, and no other graph computes its inputs_embeds.`)
  }
  const produced = session.outputs.filter(({ name }) => isCacheOutput(name))
  const ids = inputs.get('input_ids') ?? embed?.inputs.find(({ name }) => name === 'input_ids')
  const rows = [ids && tensor(ids), inputs.get('attention_mask')].filter(
    (each) => each !== undefined,
  )
  const integers = [...rows, inputs.get('position_ids')].flatMap((each) =>
    each ? [[each.name, integerTypeOf(each)] as const] : [],
  )
  for (const each of rows) assertAnyLength(each)
  const caches = [...inputs.values()]
    .filter(({ name }) => !KNOWN_INPUTS.has(name) && !embedded.includes(name))
    .map((input) => toCacheSpec(input, produced, sources))
  if (caches.length === 0) throw modelUnusable('it has no inputs for a KV cache.')
  const kvCaches = caches.filter(({ axis }) => axis >= 0)
  const states = caches.filter(({ axis }) => axis < 0)
  const positions = inputs.get('position_ids')?.shape
  const leading = positions?.[0]
  // A dimension without a size is that of the three axes.
  const copies = isSize(leading) ? leading : AXES
  const lengths = inputs.has(LAST_POSITIONS_INPUT)
  const grouped =
    kvCaches.length > 0 && kvCaches.every(({ input }) => isGroupedQueryInput(input, operations))
  return {
    tokens: inputs.has('input_ids'),
    kvCaches,
    states,
    embedded,
    integers: new Map(integers),
    attentionMask: inputs.has('attention_mask'),
    positions: positions ? { copies: positions.length > 2 ? copies : 0 } : null,
    lengths,
    logitRows: inputs.has(LOGIT_ROWS_INPUT),
    logitsToKeep: scalarShape(inputs, 'num_logits_to_keep'),
    lastLogits: hasOneRow(logits),
    cacheBranch: scalarShape(inputs, 'use_cache_branch'),
    longRope: inputs.has(LONG_ROPE_INPUT),
    grouped,
    ragged:
      grouped &&
      states.length === 0 &&
      !rows.some(({ shape }) => isSize(shape[0])) &&
      (lengths || isMaskOnlyCounted(operations)),
  }
}

/** Returns `true` if a run may have more tokens than logits. */
export const picksLogits = ({ logitsToKeep, logitRows, lastLogits }: Graph): boolean =>
  logitsToKeep !== null || logitRows || lastLogits

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

function integerTypeOf({ name, type }: Metadata): IntegerType {
  if (type === 'int64' || type === 'int32') return type
  throw modelUnusable(`its input ${name} has the type ${type}. int64 and int32 are supported.`)
}

/** Throws `unavailable` unless an input may have a row of any length for a sequence. */
function assertAnyLength({ name, shape }: Metadata): void {
  const [batch, length] = shape
  // A shape of which nothing is known is empty.
  if (shape.length === 0) return
  const isOneRow = shape.length === 2 && (!isSize(batch) || batch === 1)
  if (isOneRow && !isSize(length)) return
  const what = `its input ${name} has the shape [${shape.join(', ')}]`
  throw modelUnusable(`${what}. Export it with the free sizes [batch_size, sequence_length].`)
}

type Dimension = Metadata['shape'][number]

/** Returns `true` for a size. Where there is neither a size nor a name, the runtime has -1 or 2^32 - 1. */
const isSize = (dimension: Dimension | undefined): dimension is number =>
  typeof dimension === 'number' && dimension >= 0 && dimension < 2 ** 31

/** Returns `true` for the name of a length in tokens. */
const isLength = (dimension: Dimension | undefined): boolean =>
  /seq|len|past|total|token/i.test(String(dimension))

/** Returns `true` if the shape says that a run returns the logits of one token of each sequence. */
const hasOneRow = (logits: InferenceSession.ValueMetadata): boolean =>
  logits.isTensor &&
  (logits.shape.length === 2 ? !isLength(logits.shape[0]) : logits.shape.at(-2) === 1)

/** Returns the cache of an input. Throws `unavailable` if no output is that cache after a run. */
function toCacheSpec(input: Metadata, outputs: Ports['outputs'], sizes: HeadSizes): CacheSpec {
  const { name, type } = input
  const shape = input.shape.map((dimension) => withoutNumber(dimension, name))
  const output = outputs.find((each) => isNextOf(each, input))
  if (!output) throw unsupportedInput(name)
  const growing = findGrowingAxis(shape)
  const dims = shape.map((dimension, index) => {
    if (index === growing) return 0
    const isOfBatch = isBatch(dimension, index)
    // Where no dimension is known to be the length, another one cannot be known not to be it.
    const isKnown = isSize(dimension) || isOfBatch || growing >= 0
    const size = isKnown ? sizeOf(dimension, isOfBatch, sizes) : undefined
    if (size !== undefined && !Number.isNaN(size)) return size
    throw modelUnusable(`the size of its cache dimension ${dimension}, of ${name}, is unknown.`)
  })
  // Other caches may grow, but not by one entry for each token.
  const isKvCache = /key|value|kv/i.test(name)
  if (
    growing < 0 &&
    /(?<![a-z])(?:key|value|kv)(?:s|_?cache)?[._\d]*$/i.test(name.replace(PAST, ''))
  )
    throw modelUnusable(
      `its KV cache ${name} has the shape [${shape.join(', ')}], which has no free length.`,
    )
  return { input: name, output: output.name, type, dims, axis: isKvCache ? growing : -1 }
}

/**
 * Returns `true` if the output is the cache after a run whose cache before it is the input. Their
 * names differ only in that: `past_key_values.0.key` or `past.0.key` and `present.0.key`,
 * `past_conv.0` and `present_conv.0`.
 */
function isNextOf(
  output: InferenceSession.ValueMetadata,
  { name, type, shape }: Metadata,
): boolean {
  if (!PAST.test(name) || name.replace(PAST, '') !== output.name.replace(PRESENT, '')) return false
  if (!output.isTensor || output.type !== type) return false
  const isSame = (size: Dimension, index: number): boolean => {
    const other = output.shape[index]
    return !isSize(size) || !isSize(other) || size === other
  }
  // A shape of which nothing is known is empty.
  const { length } = output.shape
  return length === 0 || (length === shape.length && shape.every(isSame))
}

/**
 * Returns the dimension; -1 if its name is only a number that an exporter gave to an unnamed one, such
 * as `unk__3`, `dim_2`, or `past_key_values.0.key_dynamic_axes_2` after the name of its tensor.
 */
const withoutNumber = (dimension: Dimension, tensorName: string): Dimension =>
  /^[._]*(?:unk|dim|dynamic_axes|axis)?_*\d+$/i.test(String(dimension).replace(tensorName, '')) &&
  !isSize(dimension)
    ? -1
    : dimension

/** Returns `true` for the dimension of the sequences, the first one. It may be a product. */
const isBatch = (dimension: Dimension, index: number): boolean =>
  String(dimension).startsWith('batch') ||
  (index === 0 && !isSize(dimension) && !isLength(dimension))

/** Returns the dimension that is a length in tokens, which starts at 0; -1 if there is none. */
function findGrowingAxis(shape: Metadata['shape']): number {
  const unknown = [...shape.keys()].filter((index) => {
    const dimension = shape[index] as Dimension
    return !isSize(dimension) && !isBatch(dimension, index)
  })
  const named = unknown.find((index) => isLength(shape[index]))
  const others = unknown.filter((index) => !/head|dim/i.test(String(shape[index])))
  return named ?? (others.length === 1 ? (others[0] ?? -1) : -1)
}

/** Returns the size for one sequence of a dimension that does not grow; nothing if it is unknown. */
function sizeOf(
  dimension: Dimension,
  isOfBatch: boolean,
  { heads, kvHeads, headSize }: HeadSizes,
): number | undefined {
  if (isSize(dimension)) return dimension
  if (!isOfBatch) return /heads/i.test(dimension) ? kvHeads : headSize
  const factors = String(dimension)
    .split(/\s*[x*]\s*/)
    .slice(1)
    .map((factor) => (/head/.test(factor) ? heads : Number(factor)))
  return product(factors.map((factor) => factor ?? NaN))
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
