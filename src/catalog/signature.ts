/** What the catalog says of a predictor's parameters. */
import * as v from 'valibot'
import { count, text } from './values.ts'

const PARAMETER_TYPES = [
  'float16', 'float32', 'float64',
  'int8', 'int16', 'int32', 'int64',
  'uint8', 'uint16', 'uint32', 'uint64',
  'bool', 'string', 'list', 'dict', 'image', 'binary', 'null',
] as const

const enumerationSchema = v.array(v.strictObject({ name: text, value: v.any() }))
const jsonSchema = v.record(v.string(), v.unknown())

const inputParameterSchema = v.strictObject({
  name: text,
  type: v.picklist(PARAMETER_TYPES),
  description: v.optional(v.string()),
  optional: v.optional(v.boolean()),
  range: v.optional(v.strictObject({ min: v.optional(v.number()), max: v.optional(v.number()) })),
  enumeration: v.optional(enumerationSchema),
  defaultValue: v.optional(v.unknown()),
  schema: v.optional(jsonSchema),
})

const outputParameterSchema = v.strictObject({
  name: text,
  type: v.picklist(PARAMETER_TYPES),
  description: v.optional(v.string()),
  enumeration: v.optional(enumerationSchema),
  schema: v.optional(jsonSchema),
})

export const signatureSchema = v.strictObject({
  inputs: v.array(inputParameterSchema),
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
