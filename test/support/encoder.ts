/** A graph of an encoder of texts that nobody trained, and parts of others like it. */
import type { Graph, Port } from './onnx.ts'

/** Tokens as encoders of texts take them. */
export const TOKENS: Port[] = ['input_ids', 'attention_mask'].map((name) => ({
  name,
  type: 'int64',
  shape: ['batch', 'tokens'],
}))

export const toFloats = (name: string) =>
  ({ type: 'Cast', inputs: [name], outputs: [`${name}.float`], attributes: { to: 1 } }) as const

/** Encoder of texts. The vector of each token: its id, and 100. */
export const ENCODER: Graph = {
  inputs: TOKENS,
  outputs: [{ name: 'last_hidden_state', type: 'float32', shape: ['batch', 'tokens', 2] }],
  nodes: [
    toFloats('input_ids'),
    toFloats('attention_mask'),
    { type: 'Mul', inputs: ['attention_mask.float', 'hundred'], outputs: ['hundreds'] },
    { type: 'Unsqueeze', inputs: ['input_ids.float', 'last'], outputs: ['ids'] },
    { type: 'Unsqueeze', inputs: ['hundreds', 'last'], outputs: ['others'] },
    {
      type: 'Concat',
      inputs: ['ids', 'others'],
      outputs: ['last_hidden_state'],
      attributes: { axis: 2 },
    },
  ],
  weights: [
    { name: 'last', type: 'int64', shape: [1], data: { integers: [2] } },
    float('hundred', 100),
  ],
}

export function float(name: string, value: number) {
  const data = new Uint8Array(Float32Array.of(value).buffer)
  return { name, type: 'float32', shape: [1], data } as const
}
