/** Defines the schema of the steps that turn a model's output into what a person reads. */
import * as v from 'valibot'
import {
  countSchema,
  optionalFlag,
  pathSchema,
  textSchema,
  wholeNumberSchema,
} from './value-schemas.ts'

/** Place of the names of classes. */
const labelsSchema = v.union([
  v.strictObject({
    /** Name of the resource, of type `config`: a JSON array or object, or one name in each line. */
    file: pathSchema,
  }),
  v.strictObject({
    /** Key of the metadata of the ONNX file, such as `names`, whose value has the same forms. */
    metadata: textSchema,
  }),
])

const variants = v.variant('step', [
  v.strictObject({
    /** Turns scores into probabilities over the last dimension. */
    step: v.literal('softmax'),
  }),
  v.strictObject({
    /** Turns each score into a probability of its own. */
    step: v.literal('sigmoid'),
  }),
  v.strictObject({
    /** Returns a `list` of `{ label, index, score }`, the highest score first. */
    step: v.literal('top-k'),
    /** Maximum number of classes to return. */
    count: countSchema,
    /** Minimum score. Default: none. */
    threshold: v.optional(v.number()),
    /** Names of the classes. Without them, `label` is the index as text. */
    labels: v.optional(labelsSchema),
  }),
  v.strictObject({
    /** Returns the text of a recognizer: a `string`, or a `list` of `{ text, score }`. */
    step: v.literal('ctc'),
    /** Characters of the classes, without the blank. */
    labels: labelsSchema,
    /** Index of the blank. Default: 0. */
    blank: v.optional(wholeNumberSchema),
    /** `true` if a last class after those of the labels is the space. Default: false. */
    space: optionalFlag,
  }),
  v.strictObject({
    /** Returns an `image` in gray: 0 is black and 1 is white. */
    step: v.literal('mask'),
    /** Value from which a pixel is white. The others are then black. */
    threshold: v.optional(v.number()),
  }),
])

/** Step that is applied to an output of the model. */
export type Step = v.InferOutput<typeof variants>

// The type is given because TypeScript infers types of catalogs only to a certain depth.
export const stepSchema: v.GenericSchema<Step> = variants
