/** What the catalog says of one way to run a tag: its files, what they need, and what its tensors mean. */
import * as v from 'valibot'
import { count, path, sha256, text } from './values.ts'

const RESOURCE_TYPES = ['onnx', 'data', 'tokenizer', 'config', 'wasm', 'mlc'] as const

/** A file: where it is, how long, and what it must hash to. */
export const resourceSchema = v.strictObject({
  /** What it is: a graph, its external weights, a tokenizer's file, a configuration, a module, MLC's. */
  type: v.picklist(RESOURCE_TYPES),
  /** Relative to the catalog's own URL, or absolute. */
  url: text,
  /** Path within the implementation, such as `onnx/model.onnx`. */
  name: path,
  /** How long it is. */
  bytes: v.pipe(v.number(), v.integer(), v.minValue(0)),
  /** What its bytes must hash to. */
  sha256,
  /** Hashes of consecutive 16 MiB pieces; with them a damaged piece is fetched again alone. */
  chunks: v.optional(v.array(sha256)),
  /**
   * For hosts that refuse large files: it lies there in parts of this many bytes, the last one shorter,
   * at `url` with `.0`, `.1` and so on behind.
   */
  partBytes: v.optional(count),
})

/** What a device must have for an implementation to be considered. */
export const requirementsSchema = v.strictObject({
  /** WebGPU features, such as `shader-f16`; on `wasm`: `simd`, `threads`, `jspi`. */
  features: v.optional(v.array(text)),
  /** WebGPU limits that must be at least this. */
  limits: v.optional(v.record(text, v.pipe(v.number(), v.minValue(0)))),
  /** Bytes of memory it needs to run. */
  memory: v.optional(count),
})

/** How an image becomes a tensor: scaled to size, then `(value / 255 - mean) / std` per channel. */
export const imageLayoutSchema = v.strictObject({
  /** Width and height go together; without them, an image keeps its own. */
  width: v.optional(count),
  /** Width and height go together; without them, an image keeps its own. */
  height: v.optional(count),
  /** How many numbers a pixel has, and which. */
  channels: v.picklist(['gray', 'rgb', 'rgba']),
  /** Whether the channels of a tensor are planes (`nchw`) or stand together in each pixel (`nhwc`). */
  order: v.picklist(['nchw', 'nhwc']),
  /** One number, or one for each channel; default 0. */
  mean: v.optional(v.array(v.number())),
  /** One number, or one for each channel; default 1. */
  std: v.optional(v.array(v.pipe(v.number(), v.minValue(Number.MIN_VALUE)))),
  /** `contain` pads with the background, `cover` crops, `stretch` distorts. */
  fit: v.optional(v.picklist(['stretch', 'contain', 'cover'])),
  /** CSS colour under transparent pixels and padding; default black. */
  background: v.optional(text),
})

/** How text becomes tensors of tokens, a row for each text, filled up to the longest with zeros. */
export const textLayoutSchema = v.strictObject({
  /** Name of the resource that is the tokenizer, such as `tokenizer.json`. */
  tokenizer: path,
  /** Tensor that is 1 where there is a token, 0 where a row is filled up. */
  mask: v.optional(text),
  /** Tensor that tells the parts of a pair of texts apart: zeros. */
  types: v.optional(text),
  /** Most tokens of a text. */
  most: count,
})

/** Which tensor of the model a parameter of the signature is, and its form there. */
export const bindingSchema = v.strictObject({
  /** Name of the model's input or output. */
  tensor: text,
  /** Tensor shape, `null` for a free dimension; absent: the model's own. */
  shape: v.optional(v.array(v.nullable(count))),
  /** The tensor holds an image in this layout. */
  image: v.optional(imageLayoutSchema),
  /** The tensor holds the tokens of a `string`, or of a `list` of them. */
  text: v.optional(textLayoutSchema),
  /** Names of the values of a `dict`, as they stand in the tensor. */
  keys: v.optional(v.pipe(v.array(text), v.minLength(1))),
})

/** One way to run it: files, and what they need. */
export const implementationSchema = v.strictObject({
  /** Unique within the tag, such as `fp32-webgpu`. */
  id: text,
  /** What runs it. */
  engine: v.picklist(['onnx', 'mlc']),
  /** Where it runs. */
  device: v.picklist(['webgpu', 'wasm']),
  /** What a device must have; without it, any will do. */
  requires: v.optional(requirementsSchema),
  /** Its files. */
  resources: v.pipe(v.array(resourceSchema), v.minLength(1)),
  /**
   * Predictors: by parameter name. A parameter that is not listed binds to the tensor of its name.
   */
  bindings: v.optional(v.record(text, bindingSchema)),
  /** Models of MLC: what replaces parts of their mlc-chat-config.json. */
  overrides: v.optional(v.record(text, v.unknown())),
})
