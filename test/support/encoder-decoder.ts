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
 * modulo the vocabulary. Without `isMasked`, it has no mask. With `attends`, it returns the attention of a
 * head, which is all on one place. `first` takes no caches, `next` takes only these, and `merged` takes both.
 */
export function decoderGraph(
  kind: 'first' | 'next' | 'merged',
  { isMasked = true, attends = false }: { isMasked?: boolean; attends?: boolean } = {},
): Graph {
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
      ...(isMasked ? [MASK] : []),
      ...(hasStates ? [STATES] : []),
      ...(hasPast ? PASTS : []),
      ...(kind === 'merged' ? [BRANCH] : []),
    ],
    outputs: [
      port('logits', 'float32', 'batch', 1, VOCABULARY),
      port('present.0.decoder.key', 'float32', 'batch', 1, 'all', 1),
      ...(attends ? [port('cross_attentions.0', 'float32', 'batch', 1, 'new', 1)] : []),
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
      { type: 'Add', inputs: ['written', 'read'], outputs: ['both'] },
      ...(isMasked ? [cast('encoder_attention_mask', 'mask', 1), sumOf('mask', 'length')] : []),
      { type: 'Add', inputs: ['both', isMasked ? 'length' : 'nothing'], outputs: ['total'] },
      {
        type: 'Mod',
        inputs: ['total', 'size'],
        outputs: ['token'],
        attributes: { fmod: 1 },
      },
      ...(attends
        ? [{ type: 'Sub', inputs: ['column', 'column'], outputs: ['cross_attentions.0'] }]
        : []),
      cast('numbers', 'tokens', 1),
      { type: 'Sub', inputs: ['tokens', 'token'], outputs: ['distances'] },
      { type: 'Abs', inputs: ['distances'], outputs: ['lengths'] },
      { type: 'Neg', inputs: ['lengths'], outputs: ['logits'] },
    ],
    weights: [
      { name: 'edges', type: 'int64', shape: [2], data: { integers: [1, 3] } },
      { name: 'second', type: 'int64', shape: [1], data: { integers: [1] } },
      float('size', VOCABULARY),
      float('nothing', 0),
      {
        name: 'numbers',
        type: 'int64',
        shape: [1, 1, VOCABULARY],
        data: { integers: Array.from({ length: VOCABULARY }, (_, token) => token) },
      },
    ],
  }
}

/** Returns what the decoder reads of a text: the sum of the encoder's numbers, and of the mask. */
export const sumText = (ids: readonly number[]): number =>
  ids.reduce((sum, id) => sum + id + 100, 0) + ids.length

/** Returns the tokens that the decoder writes for a sum that it reads, the last one included. */
export function tokensOf(
  read: number,
  { start, end, count }: { start: readonly number[]; end: number; count: number },
): number[] {
  const written: number[] = []
  while (written.length < count && written.at(-1) !== end) {
    const all = [...start, ...written].reduce((sum, id) => sum + id, read)
    written.push(all % VOCABULARY)
  }
  return written
}

/** Encoder of speech. It returns two numbers: the loudest of the spectrogram, rounded up. */
export const SPEECH_ENCODER: Graph = {
  inputs: [port('input_features', 'float32', 'batch', 4, 100)],
  outputs: [port('last_hidden_state', 'float32', 'batch', 1, 2)],
  nodes: [
    {
      type: 'ReduceMax',
      inputs: ['input_features'],
      outputs: ['most'],
      attributes: { keepdims: 0 },
    },
    { type: 'Ceil', inputs: ['most'], outputs: ['loudest'] },
    { type: 'Expand', inputs: ['loudest', 'shape'], outputs: ['last_hidden_state'] },
  ],
  weights: [{ name: 'shape', type: 'int64', shape: [3], data: { integers: [1, 1, 2] } }],
}
