/** Defines the schema of a predictor's signature in a catalog. */
import * as v from 'valibot'
import { countSchema, optionalFlag, optionalString, textSchema } from './value-schemas.ts'

const PARAMETER_TYPES = [
  'float16',
  'float32',
  'float64',
  'int8',
  'int16',
  'int32',
  'int64',
  'uint8',
  'uint16',
  'uint32',
  'uint64',
  'bool',
  'string',
  'list',
  'dict',
  'image',
  'binary',
  'null',
] as const

const enumerationSchema = v.array(
  v.strictObject({
    /** Name that clients send and receive. */
    name: textSchema,
    /** Value in the model's tensor. */
    value: v.any(),
  }),
)

const rangeSchema = v.strictObject({
  /** Minimum, inclusive. */
  min: v.optional(v.number()),
  /** Maximum, inclusive. */
  max: v.optional(v.number()),
})

const jsonSchema = v.record(v.string(), v.unknown())

const inputParameterSchema = v.strictObject({
  /** Name of the parameter. */
  name: textSchema,
  /** Type of its values. */
  type: v.picklist(PARAMETER_TYPES),
  /** Purpose of the parameter. */
  description: optionalString,
  /** `true` if it may be omitted. It then needs a default value. */
  optional: optionalFlag,
  /** Bounds of a number. */
  range: v.optional(rangeSchema),
  /** Named values that it accepts. */
  enumeration: v.optional(enumerationSchema),
  /** Value used if the parameter is omitted. */
  defaultValue: v.optional(v.unknown()),
  /** JSON Schema of a `list` or `dict`. */
  schema: v.optional(jsonSchema),
})

const outputParameterSchema = v.strictObject({
  /** Name of the parameter. */
  name: textSchema,
  /** Type of its values. */
  type: v.picklist(PARAMETER_TYPES),
  /** Meaning of the output. */
  description: optionalString,
  /** Named values that it can have. */
  enumeration: v.optional(enumerationSchema),
  /** JSON Schema of a `list` or `dict`. */
  schema: v.optional(jsonSchema),
})

export const signatureSchema = v.strictObject({
  /** Input parameters. */
  inputs: v.array(inputParameterSchema),
  /** Output parameters. */
  outputs: v.array(outputParameterSchema),
})

/** Input and output that hold the same state of a model, before and after a run. */
export const stateSchema = v.strictObject({
  /** Input that takes the state. Its default is the tensor's shape filled with zeros. */
  input: textSchema,
  /** Output that returns the next state. */
  output: textSchema,
})

/** Parameters of a predictor that turns texts into comparable vectors. */
export const embeddingsSchema = v.strictObject({
  /** Input that takes the texts. Every implementation must bind it with `text` and a `mask`. */
  input: textSchema,
  /** Output with one row of numbers for each text. */
  output: textSchema,
  /** Length of a vector. */
  dimensions: countSchema,
  /**
   * `true` if the first part of a vector is a usable vector too (Matryoshka). Requests can then ask
   * for fewer dimensions. Default: false.
   */
  shortens: optionalFlag,
  /** Maximum number of tokens of a text. */
  maxInputTokens: countSchema,
})
