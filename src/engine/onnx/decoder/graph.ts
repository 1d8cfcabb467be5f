/**
 * What a decoder's graph takes and gives, read from the graph itself: exports differ in which
 * inputs they have, how their caches are named and shaped, and in which precision they compute.
 */
import type { InferenceSession, Tensor } from 'onnxruntime-web'
import { modelUnusable } from '../failure.ts'
import type { Session } from '../runtime.ts'

/** A cache: what a run leaves behind under `output` is what the next one takes as `input`. */
export interface CacheSlot {
  input: string
  output: string
  type: Tensor.Type
  /** Its shape before the first token. */
  dims: number[]
}

export interface Graph {
  caches: CacheSlot[]
  attentionMask: boolean
  /** How often positions are repeated in a leading dimension; 0: the graph counts by itself. */
  positions: { copies: number } | null
  /** Shape of the input that says for how many positions scores are wanted; `null`: always all. */
  logitsToKeep: number[] | null
}

type Metadata = InferenceSession.TensorValueMetadata

const PLAIN = new Set(['input_ids', 'attention_mask', 'position_ids', 'num_logits_to_keep'])

/** The outputs that are caches, which is all but the scores. */
export const isCacheOutput = (output: string): boolean => output.startsWith('present')

export function readGraph(session: Session): Graph {
  const inputs = new Map(session.inputs.map((input) => [input.name, tensor(input)]))
  const outputs = session.outputs.map(({ name }) => name)
  if (!inputs.has('input_ids') || !outputs.includes('logits')) {
    throw modelUnusable('it is not a text decoder: it takes no input_ids, or gives no logits.')
  }
  const sources = new Map(
    outputs.filter(isCacheOutput).map((output) => [inputOf(output, inputs), output]),
  )
  const caches = [...inputs.values()]
    .filter(({ name }) => !PLAIN.has(name))
    .map(({ name, type, shape }): CacheSlot => {
      const output = sources.get(name)
      if (output === undefined)
        throw modelUnusable(`it needs an input that is not supported, ${name}.`)
      return { input: name, output, type, dims: shape.map(initialSize) }
    })
  const positions = inputs.get('position_ids')?.shape
  return {
    caches,
    attentionMask: inputs.has('attention_mask'),
    positions: positions
      ? { copies: positions.length > 2 ? initialSize(positions[0] ?? 1) : 0 }
      : null,
    logitsToKeep: inputs.get('num_logits_to_keep')?.shape.map(() => 1) ?? null,
  }
}

function tensor(input: InferenceSession.ValueMetadata): Metadata {
  if (!input.isTensor) throw modelUnusable(`its input ${input.name} is not a tensor.`)
  return input
}

/** `present.0.key` becomes `past_key_values.0.key`, `present_conv.0` becomes `past_conv.0`. */
function inputOf(output: string, inputs: ReadonlyMap<string, unknown>): string {
  const named = output.replace('present_', 'past_')
  return inputs.has(named) ? named : output.replace('present', 'past_key_values')
}

/**
 * One conversation at a time; other dimensions without a number are lengths, which begin at
 * nothing.
 */
function initialSize(dimension: number | string): number {
  if (typeof dimension === 'number') return dimension
  return dimension.startsWith('batch') ? 1 : 0
}
