/** What the catalog says of a predictor's parameters. */
import * as v from 'valibot'
import { count, text } from './values.ts'

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
    /** What callers say and get. */
    name: text,
    /** What the model takes and gives. */
    value: v.any(),
  }),
)

const rangeSchema = v.strictObject({
  /** The least, itself included. */
  min: v.optional(v.number()),
  /** The most, itself included. */
  max: v.optional(v.number()),
})

const jsonSchema = v.record(v.string(), v.unknown())

const inputParameterSchema = v.strictObject({
  /** By which its value is given. */
  name: text,
  /** What its values are. */
  type: v.picklist(PARAMETER_TYPES),
  /** What it is for. */
  description: v.optional(v.string()),
  /** Whether it may be left out; it then needs a default value. */
  optional: v.optional(v.boolean()),
  /** Bounds of a number. */
  range: v.optional(rangeSchema),
  /** The values it may have, by name. */
  enumeration: v.optional(enumerationSchema),
  /** What it is when it is left out. */
  defaultValue: v.optional(v.unknown()),
  /** JSON Schema of a `list` or `dict`. */
  schema: v.optional(jsonSchema),
})

const outputParameterSchema = v.strictObject({
  /** By which its value is answered. */
  name: text,
  /** What its values are. */
  type: v.picklist(PARAMETER_TYPES),
  /** What it says. */
  description: v.optional(v.string()),
  /** The values it may have, by name. */
  enumeration: v.optional(enumerationSchema),
  /** JSON Schema of a `list` or `dict`. */
  schema: v.optional(jsonSchema),
})

export const signatureSchema = v.strictObject({
  /** What it takes. */
  inputs: v.array(inputParameterSchema),
  /** What it gives. */
  outputs: v.array(outputParameterSchema),
})

/** Names the parameters by which a predictor turns texts into vectors that can be compared. */
export const embeddingsSchema = v.strictObject({
  /** The input that takes texts; every implementation binds it with `text` and a `mask`. */
  input: text,
  /** The output that has a row of numbers for each text. */
  output: text,
  /** Length of a vector. */
  dimensions: count,
  /**
   * Whether the beginning of a vector is a vector too, as the model was taught (Matryoshka): then fewer
   * dimensions can be asked for. Default: false.
   */
  shortens: v.optional(v.boolean()),
  /** Most tokens of a text. */
  maxInputTokens: count,
})
