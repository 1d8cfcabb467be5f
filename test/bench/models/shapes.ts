/** Shapes and formats of the models that are only measured: decoders of the Llama family. */
import type { Dtype } from '../../../src/catalog/hub/variants.ts'

/** Lengths of a decoder's matrices. */
export interface Shape {
  hidden: number
  layers: number
  heads: number
  kvHeads: number
  /** Length of an attention head. */
  head: number
  /** Length of the feed-forward layers. */
  feedForward: number
  vocabulary: number
  /** Longest context in tokens. */
  context: number
}

export type ShapeName = 'small' | 'large' | '30M' | '135M' | '500M' | '1500M'

export const SHAPES: Readonly<Record<ShapeName, Shape>> = {
  // It has much cache for few weights, as small models in long conversations do.
  small: {
    hidden: 128,
    layers: 4,
    heads: 4,
    kvHeads: 4,
    head: 64,
    feedForward: 256,
    vocabulary: 2_048,
    context: 4_096,
  },
  // It has more than 200 MB in fp32, to be loaded.
  large: {
    hidden: 768,
    layers: 8,
    heads: 12,
    kvHeads: 4,
    head: 64,
    feedForward: 2_048,
    vocabulary: 2_048,
    context: 4_096,
  },
  '30M': {
    hidden: 384,
    layers: 12,
    heads: 6,
    kvHeads: 2,
    head: 64,
    feedForward: 1_024,
    vocabulary: 16_384,
    context: 8_192,
  },
  // The shape of SmolLM2-135M.
  '135M': {
    hidden: 576,
    layers: 30,
    heads: 9,
    kvHeads: 3,
    head: 64,
    feedForward: 1_536,
    vocabulary: 49_152,
    context: 8_192,
  },
  // The shape of Qwen2.5-0.5B.
  '500M': {
    hidden: 896,
    layers: 24,
    heads: 14,
    kvHeads: 2,
    head: 64,
    feedForward: 4_864,
    vocabulary: 151_936,
    context: 8_192,
  },
  // The shape of Qwen2.5-1.5B.
  '1500M': {
    hidden: 1_536,
    layers: 28,
    heads: 12,
    kvHeads: 2,
    head: 128,
    feedForward: 8_960,
    vocabulary: 151_936,
    context: 8_192,
  },
}

/** Format of an ONNX file's matrices: a precision of hubs, or `q4` with `accuracy_level` 4. */
export type OnnxFormat = Extract<Dtype, 'fp32' | 'q8' | 'uint8' | 'q4' | 'q4f16' | 'bnb4'> | 'q4a4'

/** Format of a GGUF file's matrices. */
export type GgufFormat = 'q4_0' | 'q8_0'

/** Quantization of a model that MLC compiled: 4 bits, with activations of 16 or 32 bits. */
export type MlcFormat = 'q4f16_1' | 'q4f32_1'

/**
 * Folder of a model with real weights, which `tools/exporters/fidelity.py` makes. It has forms of its
 * own: `q8b32` has blocks of 32 weights in 8 bits each, and `q4_1` is the GGUF file as it was published.
 */
export const REAL_MODEL = 'real'

/** Folder of a GGUF file that is measured, and its format, by which the file is named there. */
export const GGUF_MODEL = 'gguf'

export type ModelName = ShapeName | typeof REAL_MODEL | typeof GGUF_MODEL
export type Format = OnnxFormat | GgufFormat | MlcFormat | 'q8b32' | 'q4_1' | typeof GGUF_MODEL

/** Returns the longest context of a model in tokens. */
export function contextOf(model: ModelName): number {
  if (model === GGUF_MODEL) return 2_048
  return SHAPES[model === REAL_MODEL ? '135M' : model].context
}

/** File name endings of each format, as hubs have them. */
const SUFFIXES: Readonly<Record<OnnxFormat | 'q8b32', string>> = {
  fp32: '',
  q8: '_quantized',
  uint8: '_uint8',
  q4: '_q4',
  // No hub has this one.
  q4a4: '_q4a4',
  q4f16: '_q4f16',
  bnb4: '_bnb4',
  q8b32: '_q8b32',
}

/** Returns the path of a model's graph in its folder. Its weights are at the path with `_data` added. */
export const onnxPath = (format: keyof typeof SUFFIXES): string =>
  `onnx/model${SUFFIXES[format]}.onnx`

/** Returns the path of a model's GGUF file in its folder. */
export const ggufPath = (format: GgufFormat | 'q4_1' | typeof GGUF_MODEL): string =>
  `${format}.gguf`
