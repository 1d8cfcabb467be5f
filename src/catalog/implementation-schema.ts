/** Defines the schema of an implementation: its files, requirements and tensor layouts. */
import * as v from 'valibot'
import { SAMPLE_RATES } from '../values/sample-rates.ts'
import { stepSchema } from './step-schema.ts'
import {
  countSchema,
  nonEmptyArray,
  optionalCount,
  optionalRecord,
  optionalText,
  pathSchema,
  sha256Schema,
  textSchema,
  wholeNumberSchema,
} from './value-schemas.ts'

const RESOURCE_TYPES = ['onnx', 'data', 'tokenizer', 'config', 'wasm', 'mlc'] as const

/** File with its URL, length and digest. */
export const resourceSchema = v.strictObject({
  /** Kind of file: graph, external weights, tokenizer, configuration, wasm module, or MLC file. */
  type: v.picklist(RESOURCE_TYPES),
  /** Absolute URL, or a URL relative to the catalog's own. */
  url: textSchema,
  /** Path within the implementation, such as `onnx/model.onnx`. */
  name: pathSchema,
  /** Length in bytes. */
  bytes: wholeNumberSchema,
  /** SHA-256 of the file, in lower-case hex digits. */
  sha256: sha256Schema,
  /** Hashes of consecutive 16 MiB chunks. With them, a damaged chunk is downloaded again alone. */
  chunks: v.optional(v.array(sha256Schema)),
  /**
   * Length in bytes of each part of a file that is split for hosts with a size limit. The last part
   * is shorter. The parts are at `url` with the suffixes `.0`, `.1`, and so on.
   */
  partBytes: optionalCount,
})

/** Requirements that a device must meet to run an implementation. */
export const requirementsSchema = v.strictObject({
  /** WebGPU features, such as `shader-f16`; for `wasm`: `simd`, `threads`, `jspi`. */
  features: v.optional(v.array(textSchema)),
  /** Minimum values of WebGPU limits. */
  limits: v.optional(v.record(textSchema, v.pipe(v.number(), v.minValue(0)))),
  /** Bytes of memory needed to run. */
  memory: optionalCount,
})

/** Padding beside an image that keeps its aspect ratio, with `fit: 'pad'`. */
const paddingSchema = v.strictObject({
  /** Side of the padding: after the image (right, bottom), before it, or both. Default: `end`. */
  side: v.optional(v.picklist(['start', 'end', 'both'])),
  /**
   * Value of the padding as if it were a pixel, from 0 to 255, before it is normalized: one number,
   * or one for each channel. Default: 0.
   */
  value: v.optional(v.array(v.number())),
})

/**
 * Conversion of an image to a tensor: resize, then `(value * scale - mean) / std` per channel. A
 * side that is not set follows from the other one by the aspect ratio. Without both sides, the image
 * keeps its own size.
 */
export const imageLayoutSchema = v.strictObject({
  /** Width in pixels. Default: it follows from the height or is the image's own. */
  width: optionalCount,
  /** Height in pixels. Default: it follows from the width or is the image's own. */
  height: optionalCount,
  /**
   * Number of pixels of which the sides that are not set become multiples: the nearest one if the
   * image is stretched, the next larger one if it is padded, the next smaller one if it is cropped.
   */
  multipleOf: optionalCount,
  /** Channels of each pixel, in the order of the tensor. */
  channels: v.picklist(['gray', 'rgb', 'bgr', 'rgba']),
  /** Memory order of the channels: planes (`nchw`) or interleaved in each pixel (`nhwc`). */
  order: v.picklist(['nchw', 'nhwc']),
  /** Factor of the pixels' bytes. Default: 1 / 255, so that values are from 0 to 1. */
  scale: v.optional(v.pipe(v.number(), v.minValue(Number.MIN_VALUE))),
  /** Mean to subtract: one number, or one for each channel of the tensor. Default: 0. */
  mean: v.optional(v.array(v.number())),
  /** Standard deviation to divide by: one number, or one for each channel. Default: 1. */
  std: v.optional(v.array(v.pipe(v.number(), v.minValue(Number.MIN_VALUE)))),
  /**
   * Resize mode: `contain` centers the image on the background, `cover` crops, `stretch` distorts,
   * `pad` keeps the aspect ratio and fills the rest with `padding`. A batch of images of different
   * sizes needs `pad`, which fills up to the largest. Default: `stretch`.
   */
  fit: v.optional(v.picklist(['stretch', 'contain', 'cover', 'pad'])),
  /** Padding of `fit: 'pad'`. */
  padding: v.optional(paddingSchema),
  /**
   * Filter that gives the same pixels as Pillow. Not possible with `rgba`. Default: the browser's
   * own, which differs between browsers.
   */
  resample: v.optional(v.picklist(['box', 'bilinear', 'bicubic', 'lanczos'])),
  /** CSS color behind transparent pixels, and around the image with `contain`. Default: black. */
  background: optionalText,
})

/** Conversion of texts to token tensors: one row for each text, padded with zeros. */
export const textLayoutSchema = v.strictObject({
  /** Name of the tokenizer's resource, such as `tokenizer.json`. */
  tokenizer: pathSchema,
  /** Name of the attention mask tensor: 1 for a token, 0 for padding. */
  mask: optionalText,
  /** Name of the token type tensor. It is filled with zeros. */
  types: optionalText,
  /** Maximum number of tokens of a text. */
  most: countSchema,
})

/** Conversion of sound to a tensor of mono samples from -1 to 1. */
export const audioLayoutSchema = v.strictObject({
  /** Samples per second that the model expects, 1,000 to 768,000. */
  rate: v.pipe(countSchema, v.minValue(SAMPLE_RATES[0]), v.maxValue(SAMPLE_RATES[1])),
  /**
   * Number of new samples that the model takes at once. Longer sound is cut into windows, and each
   * output gets a first dimension for them. Default: the tensor's length if it is fixed, else all.
   */
  window: optionalCount,
  /** Number of samples before the window that the model takes too, 0 at first. Default: 0. */
  context: optionalCount,
  /** Factor of the samples, such as 32768 for a model that takes 16-bit values. Default: 1. */
  scale: v.optional(v.pipe(v.number(), v.minValue(Number.MIN_VALUE))),
})

/** Mapping of a signature parameter to a tensor of the model. */
export const bindingSchema = v.strictObject({
  /** Name of the model's input or output. */
  tensor: textSchema,
  /** Tensor shape, with `null` for a dynamic dimension. Default: the model's own. */
  shape: v.optional(v.array(v.nullable(countSchema))),
  /** Layout of the image, if the tensor holds one. */
  image: v.optional(imageLayoutSchema),
  /** Tokenization, if the tensor holds the tokens of a `string` or a `list` of strings. */
  text: v.optional(textLayoutSchema),
  /** Names of the values of a `dict`, in the order of the tensor. */
  keys: v.optional(nonEmptyArray(textSchema)),
  /** Conversion of sound, if the tensor holds its samples. */
  audio: v.optional(audioLayoutSchema),
  /** Steps that are applied to the tensor of an output, in order. Only the last returns no tensor. */
  steps: v.optional(nonEmptyArray(stepSchema)),
})

/** One way to run a tag: its files and requirements. */
export const implementationSchema = v.strictObject({
  /** Id that is unique within the tag, such as `fp32-webgpu`. */
  id: textSchema,
  /** Engine that runs it. */
  engine: v.picklist(['onnx', 'mlc']),
  /** Device that it runs on. */
  device: v.picklist(['webgpu', 'wasm']),
  /** Requirements on the device. Default: none. */
  requires: v.optional(requirementsSchema),
  /** Files of the implementation. */
  resources: nonEmptyArray(resourceSchema),
  /** Bindings of a predictor's parameters by name. Default: the tensor of the parameter's name. */
  bindings: v.optional(v.record(textSchema, bindingSchema)),
  /** Values that replace parts of mlc-chat-config.json, for models of MLC. */
  overrides: optionalRecord,
})
