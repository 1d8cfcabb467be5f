/**
 * A convolution that onnxruntime-web 1.30 computes wrongly on SwiftShader, the only adapter it was tried
 * on. The kernel seems to be the cause and not the adapter: the input channels are a multiple of 3 but
 * not of 4, there are more than 3, and the output channels are a multiple of 4. With 8 input channels
 * the same graph is right.
 */
import { createChance } from '../support/random.ts'
import { onnxFile } from '../support/onnx.ts'

export const SIDE = 12
const OUTPUT_CHANNELS = 16

/** Returns the ONNX file: `x` of `[1, channels, 12, 12]` in, `y` of `[1, 16, 10, 10]` out. */
export function convolution(channels: 8 | 9): Uint8Array<ArrayBuffer> {
  const weights = draw(OUTPUT_CHANNELS * channels * 9, 1)
  return onnxFile({
    inputs: [{ name: 'x', type: 'float32', shape: [1, channels, SIDE, SIDE] }],
    outputs: [
      { name: 'y', type: 'float32', shape: [1, OUTPUT_CHANNELS, SIDE - 2, SIDE - 2] },
      { name: 'best', type: 'int64', shape: [1, 1, SIDE - 2, SIDE - 2] },
    ],
    nodes: [
      { type: 'Conv', inputs: ['x', 'w'], outputs: ['y'] },
      { type: 'ArgMax', inputs: ['y'], outputs: ['best'], attributes: { axis: 1 } },
    ],
    weights: [
      {
        name: 'w',
        type: 'float32',
        shape: [OUTPUT_CHANNELS, channels, 3, 3],
        data: new Uint8Array(weights.buffer),
      },
    ],
  })
}

/** Returns an input for {@link convolution}. */
export function noise(channels: 8 | 9, seed: number): Float32Array {
  return draw(channels * SIDE * SIDE, seed)
}

function draw(count: number, seed: number): Float32Array<ArrayBuffer> {
  const chance = createChance(seed)
  return Float32Array.from({ length: count }, () => chance.below(2000) / 1000 - 1)
}
