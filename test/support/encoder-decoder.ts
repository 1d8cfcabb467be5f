/** Graphs of a decoder that nobody trained, for the encoder beside it, and what they write. */
import { float } from './encoder.ts'
import type { Graph, Operator, Port } from './onnx.ts'

/** Number of tokens that the decoder knows. */
const VOCABULARY = 90

const DECODER_PAST = 'past_key_values.0.decoder.key'
const ENCODER_PAST = 'past_key_values.0.encoder.key'

const port = (name: string, type: Port['type'], ...shape: (number | string)[]): Port => ({
  name,
  type,
  shape,
})

const IDS = port('input_ids', 'int64', 'batch', 'new')
const MASK = port('encoder_attention_mask', 'int64', 'batch', 'read')
const STATES = port('encoder_hidden_states', 'float32', 'batch', 'read', 2)
const PASTS = [
  port(DECODER_PAST, 'float32', 'batch', 1, 'past', 1),
  port(ENCODER_PAST, 'float32', 'batch', 1, 'read', 2),
]
const BRANCH = port('use_cache_branch', 'bool', 1)

const sumOf = (name: string, sum: string): Operator => ({
  type: 'ReduceSum',
  inputs: [name],
  outputs: [sum],
  attributes: { keepdims: 0 },
})

const cast = (name: string, result: string, to: number): Operator => ({
  type: 'Cast',
  inputs: [name],
  outputs: [result],
  attributes: { to },
})

/**
 * A decoder. The next token is the sum of all tokens, of what the encoder returned and of its mask,
 * modulo the vocabulary. `first` takes no caches, `next` takes only these, and `merged` takes both.
 */
export function decoderGraph(kind: 'first' | 'next' | 'merged'): Graph {
  const hasPast = kind !== 'first'
  const hasStates = kind !== 'next'
  const read: Record<typeof kind, Operator[]> = {
    first: [sumOf('encoder_hidden_states', 'read')],
    next: [sumOf(ENCODER_PAST, 'read')],
    merged: [
      sumOf('encoder_hidden_states', 'states'),
      sumOf(ENCODER_PAST, 'cached'),
      { type: 'Where', inputs: ['use_cache_branch', 'cached', 'states'], outputs: ['read'] },
    ],
  }
  return {
    inputs: [
      IDS,
      MASK,
      ...(hasStates ? [STATES] : []),
      ...(hasPast ? PASTS : []),
      ...(kind === 'merged' ? [BRANCH] : []),
    ],
    outputs: [
      port('logits', 'float32', 'batch', 1, VOCABULARY),
      port('present.0.decoder.key', 'float32', 'batch', 1, 'all', 1),
      ...(hasStates ? [port('present.0.encoder.key', 'float32', 'batch', 1, 'read', 2)] : []),
    ],
    nodes: [
      cast('input_ids', 'ids', 1),
      { type: 'Unsqueeze', inputs: ['ids', 'edges'], outputs: ['column'] },
      hasPast
        ? {
            type: 'Concat',
            inputs: [DECODER_PAST, 'column'],
            outputs: ['present.0.decoder.key'],
            attributes: { axis: 2 },
          }
        : { type: 'Identity', inputs: ['column'], outputs: ['present.0.decoder.key'] },
      ...(hasStates
        ? [
            {
              type: 'Unsqueeze',
              inputs: ['encoder_hidden_states', 'second'],
              outputs: ['present.0.encoder.key'],
            },
          ]
        : []),
      ...read[kind],
      sumOf('present.0.decoder.key', 'written'),
      cast('encoder_attention_mask', 'mask', 1),
      sumOf('mask', 'length'),
      { type: 'Add', inputs: ['written', 'read'], outputs: ['both'] },
      { type: 'Add', inputs: ['both', 'length'], outputs: ['total'] },
      {
        type: 'Mod',
        inputs: ['total', 'size'],
        outputs: ['token'],
        attributes: { fmod: 1 },
      },
      cast('numbers', 'tokens', 1),
      { type: 'Sub', inputs: ['tokens', 'token'], outputs: ['distances'] },
      { type: 'Abs', inputs: ['distances'], outputs: ['lengths'] },
      { type: 'Neg', inputs: ['lengths'], outputs: ['logits'] },
    ],
    weights: [
      { name: 'edges', type: 'int64', shape: [2], data: { integers: [1, 3] } },
      { name: 'second', type: 'int64', shape: [1], data: { integers: [1] } },
      float('size', VOCABULARY),
      {
        name: 'numbers',
        type: 'int64',
        shape: [1, 1, VOCABULARY],
        data: { integers: Array.from({ length: VOCABULARY }, (_, token) => token) },
      },
    ],
  }
}

/** Returns the tokens that the decoder writes for those of a text, the last one included. */
export function tokensOf(
  ids: readonly number[],
  { start, end, count }: { start: number; end: number; count: number },
): number[] {
  const read = ids.reduce((sum, id) => sum + id + 100, 0) + ids.length
  const written: number[] = []
  while (written.length < count && written.at(-1) !== end) {
    const all = [start, ...written].reduce((sum, id) => sum + id, read)
    written.push(all % VOCABULARY)
  }
  return written
}
