/**
 * What a decoder's graph takes and gives, read from the graph itself: exports differ in which
 * inputs they have, how their caches are named and shaped, and in which precision they compute.
 */
import type { InferenceSession, Tensor } from 'onnxruntime-web'
import { modelUnusable } from '../../failure.ts'
import type { Session } from '../runtime.ts'
import type { Operation } from './operations.ts'

/** A cache: what a run leaves behind under `output` is what the next one takes as `input`. */
export interface CacheSlot {
  input: string
  output: string
  type: Tensor.Type
  /** Its shape for one conversation, before the first token. */
  dims: readonly number[]
  /** The dimension that grows with each token; -1: a state, of which only the latest is known. */
  axis: number
}

export interface Graph {
  /** It takes the tokens themselves. */
  tokens: boolean
  /** Caches with an entry for each token, and those without. */
  lists: readonly CacheSlot[]
  states: readonly CacheSlot[]
  /** Inputs that a graph of their own makes of the tokens. */
  embedded: readonly string[]
  attentionMask: boolean
  /** How often positions are repeated in a leading dimension; 0: they have none. */
  positions: { copies: number } | null
  /** Shape of the input that says for how many positions scores are wanted; `null`: always all. */
  logitsToKeep: readonly number[] | null
  /** Shape of the input that says whether there is a past. */
  cacheBranch: readonly number[] | null
  /** Its attention knows how much of a list counts: there may be more, and it may be written to. */
  grouped: boolean
  /** Conversations of different lengths can be computed together. */
  ragged: boolean
}

export interface GraphSources {
  /** The graph that makes inputs of tokens, where it is apart. */
  embed?: Session
  /** See `readOperations`; without them all attention is taken to be of the plain kind. */
  operations?: readonly Operation[]
  /** Heads of attention, as the model's configuration has them: some caches are shaped by them. */
  heads?: number
}

type Metadata = InferenceSession.TensorValueMetadata

const PLAIN = new Set([
  'input_ids',
  'attention_mask',
  'position_ids',
  'num_logits_to_keep',
  'use_cache_branch',
])

/** The outputs that are caches. */
const isCacheOutput = (output: string): boolean => output.startsWith('present')

/** The outputs of either graph that are best left where they were computed: all that are used. */
export const staysOnDevice = (output: string): boolean =>
  isCacheOutput(output) || output === 'logits' || EMBEDDED.has(output)

/** The same without the scores, which are looked at where no GPU is. */
export const staysInHeap = (output: string): boolean => output !== 'logits' && staysOnDevice(output)

const EMBEDDED = new Set(['inputs_embeds', 'per_layer_inputs'])

/** Throws `unavailable` with the name of the first input that cannot be given. */
export function readGraph(session: Session, sources: GraphSources = {}): Graph {
  const { embed, operations = [], heads } = sources
  const inputs = new Map(session.inputs.map((input) => [input.name, tensor(input)]))
  const outputs = session.outputs.map(({ name }) => name)
  if (!outputs.includes('logits')) throw modelUnusable('it is not a text decoder: no logits.')
  const embedded = embeddedInputs(inputs, embed)
  if (!inputs.has('input_ids') && !embedded.includes('inputs_embeds')) {
    const what = 'it is not a text decoder: it takes neither input_ids nor inputs_embeds'
    throw modelUnusable(`${what} of a graph beside it.`)
  }
  const produced = new Map(
    outputs.filter(isCacheOutput).map((output) => [inputOf(output, inputs), output]),
  )
  const caches = [...inputs.values()]
    .filter(({ name }) => !PLAIN.has(name) && !embedded.includes(name))
    .map((input) => cacheSlot(input, produced.get(input.name), heads))
  if (caches.length === 0)
    throw modelUnusable('it has no caches, and so forgets what it was given.')
  const lists = caches.filter(({ axis }) => axis >= 0)
  const states = caches.filter(({ axis }) => axis < 0)
  const positions = inputs.get('position_ids')?.shape
  const grouped = lists.length > 0 && lists.every(({ input }) => isGrouped(input, operations))
  return {
    tokens: inputs.has('input_ids'),
    lists,
    states,
    embedded,
    attentionMask: inputs.has('attention_mask'),
    positions: positions ? { copies: positions.length > 2 ? leading(positions[0]) : 0 } : null,
    logitsToKeep: scalarShape(inputs, 'num_logits_to_keep'),
    cacheBranch: scalarShape(inputs, 'use_cache_branch'),
    grouped,
    ragged: grouped && states.length === 0 && isCounted(operations),
  }
}

function tensor(input: InferenceSession.ValueMetadata): Metadata {
  if (!input.isTensor) throw modelUnusable(`its input ${input.name} is not a tensor.`)
  return input
}

function embeddedInputs(
  inputs: ReadonlyMap<string, Metadata>,
  embed: Session | undefined,
): string[] {
  if (!embed) return []
  const unknown = embed.inputs.find(({ name }) => name !== 'input_ids')
  if (unknown) throw needless(unknown.name)
  return embed.outputs.map(({ name }) => name).filter((name) => inputs.has(name))
}

/** `present.0.key` becomes `past_key_values.0.key`, `present_conv.0` becomes `past_conv.0`. */
function inputOf(output: string, inputs: ReadonlyMap<string, unknown>): string {
  const named = output.replace('present_', 'past_')
  return inputs.has(named) ? named : output.replace('present', 'past_key_values')
}

function cacheSlot(
  { name, type, shape }: Metadata,
  output: string | undefined,
  heads: number | undefined,
): CacheSlot {
  if (output === undefined) throw needless(name)
  const sizes = shape.map((dimension) => sizeOf(dimension, heads))
  const growing = sizes.flatMap((size, index) => (size === null ? [index] : []))
  const isList = name.startsWith('past_key_values') && growing.length === 1
  const dims = sizes.map((size) => size ?? 0)
  return { input: name, output, type, dims, axis: isList ? (growing[0] ?? -1) : -1 }
}

/** Size for one conversation; `null` for a length, which begins at nothing. */
function sizeOf(dimension: number | string, heads: number | undefined): number | null {
  if (typeof dimension === 'number') return dimension
  if (!dimension.startsWith('batch')) return null
  const factors = dimension.split(/\s*[x*]\s*/).slice(1)
  return factors.reduce((product, factor) => {
    const size = /head/.test(factor) ? heads : Number(factor)
    if (!size) throw modelUnusable(`the size of one of its caches is not known, ${dimension}.`)
    return product * size
  }, 1)
}

const leading = (dimension: number | string | undefined): number =>
  typeof dimension === 'number' ? dimension : 1

function scalarShape(inputs: ReadonlyMap<string, Metadata>, name: string): number[] | null {
  return inputs.get(name)?.shape.map(() => 1) ?? null
}

function isGrouped(input: string, operations: readonly Operation[]): boolean {
  const users = operations.filter(({ inputs }) => inputs.includes(input))
  return users.length > 0 && users.every(({ kind }) => kind === 'GroupQueryAttention')
}

/**
 * Whether nothing but the count of tokens is taken from the mask, so that a shorter conversation may
 * be filled up with zeros. A branch may depend on the longest one.
 */
function isCounted(operations: readonly Operation[]): boolean {
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

function needless(name: string): Error {
  return modelUnusable(`it needs an input that is not supported, ${name}.`)
}
