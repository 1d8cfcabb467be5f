/** Defines the schema of the steps of a catalog, which turn outputs into what a person reads. */
import * as v from 'valibot'
import * as values from './value-schemas.ts'

const labelsSchema = v.union([
  v.strictObject({
    /** Name of the resource, of type `config`: a JSON array or object, or one name in each line. */
    file: values.pathSchema,
    /** Key of the names in a JSON object, such as `id2label` of `config.json`. Default: all of it. */
    key: values.optionalText,
  }),
  v.strictObject({
    /** The names themselves, in the order of the classes. */
    names: values.nonEmptyArray(v.string()),
  }),
  v.strictObject({
    /** Key of the metadata of the ONNX file, such as `names`, whose value has the same forms. */
    metadata: values.textSchema,
  }),
])

/** Ways in which tokens become entities. */
export const ENTITY_MODES = ['none', 'simple', 'first', 'average', 'max'] as const

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
    count: values.countSchema,
    /** Name of an optional input, an `int32`, that replaces `count` in a prediction. */
    countInput: values.optionalText,
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
    blank: v.optional(values.wholeNumberSchema),
    /** `true` if a last class after those of the labels is the space. Default: false. */
    space: values.optionalFlag,
    /** Label that stands for the space between words. The text then has no spaces at its ends. */
    delimiter: values.optionalText,
  }),
  v.strictObject({
    /** Returns an `image` in gray: 0 is black and 1 is white. */
    step: v.literal('mask'),
    /** Value from which a pixel is white. The others are then black. */
    threshold: v.optional(v.number()),
  }),
  v.strictObject({
    /** Makes one vector of those of the tokens of each text: `[texts, tokens, n]` to `[texts, n]`. */
    step: v.literal('pool'),
    /**
     * Vector to return: the `mean` of all tokens, that of the `first` or the `last` one, the largest
     * number of all (`max`), or their sum divided by the root of their count (`mean-sqrt`).
     */
    by: v.picklist(['mean', 'first', 'last', 'max', 'mean-sqrt']),
  }),
  v.strictObject({
    /**
     * Returns the labels of a prediction, which the text layout names, as a `list` of
     * `{ label, index, score }`, the highest score first. Without `entailment`, it reads the score of
     * each label. A prediction without labels is left to the next steps.
     */
    step: v.literal('zero-shot'),
    /** Class of a model of pairs which says that the label fits the text. */
    entailment: v.optional(values.wholeNumberSchema),
    /**
     * Name of an optional input, a `bool`. If it is true, several labels may fit, and each has a
     * probability of its own.
     */
    severalInput: values.optionalText,
  }),
  v.strictObject({
    /**
     * Returns the entities of a text, from probabilities of its tokens: a `list` of
     * `{ entity, score, start, end, word }`. `start` and `end` count characters of the text as JavaScript
     * does, and `word` is the text between them.
     */
    step: v.literal('entities'),
    /** Names of the classes. Those of `B-` and `I-` begin and continue an entity. */
    labels: labelsSchema,
    /**
     * Way in which tokens become entities: each is one (`none`), neighbors of a class are one
     * (`simple`), or words are, with the class of their `first` token, of the `average`, or of the token
     * with the highest score (`max`). Default: `simple`.
     */
    by: v.optional(v.picklist(ENTITY_MODES)),
    /** Name of an optional input, a `string`, that replaces `by` in a prediction. */
    byInput: values.optionalText,
    /** Classes that are no entities. Default: `O`. */
    ignore: v.optional(v.array(v.string())),
  }),
  v.strictObject({
    /**
     * Returns the answer to a question as a `dict` of `{ answer, score, start, end }`, from the scores of
     * the first token of the answer. The text is the question, and its pair is what the answer is in.
     */
    step: v.literal('span'),
    /** Name of the tensor with the scores of the last token. */
    end: values.textSchema,
    /** Maximum number of tokens of an answer. Default: 15. */
    longest: values.optionalCount,
  }),
  v.strictObject({
    /**
     * Returns the best tokens for the masked one of a text, from probabilities of all tokens: a `list` of
     * `{ score, token, text, sequence }`, or one such list for each masked token.
     */
    step: v.literal('fill-mask'),
    /** Token that a text has in place of the masked one, such as `[MASK]`. */
    mask: values.textSchema,
    /** Maximum number of tokens to return. */
    count: values.countSchema,
    /** Name of an optional input, an `int32`, that replaces `count` in a prediction. */
    countInput: values.optionalText,
  }),
  v.strictObject({
    /** Scales each vector to the length 1 (L2 norm). */
    step: v.literal('normalize'),
  }),
  v.strictObject({
    /**
     * Returns the objects of an image, from probabilities of the classes of boxes: a `list` of
     * `{ label, index, score, box: { xmin, ymin, xmax, ymax } }`, the highest score first. Boxes are in
     * pixels of the image.
     */
    step: v.literal('objects'),
    /** Name of the tensor with the boxes: center, width and height as shares of the image. */
    boxes: values.textSchema,
    /** Names of the classes. Without them, `label` is the index as text. */
    labels: v.optional(labelsSchema),
    /**
     * `true` if the last class says that a box has no object. A box then has its best class only.
     * Default: the best pairs of a box and a class are objects.
     */
    background: values.optionalFlag,
    /** Maximum number of objects. Default: the number of boxes. */
    count: values.optionalCount,
    /** Score above which a box is an object. Default: 0.5. */
    threshold: v.optional(v.number()),
    /** Name of an optional input, a `float32`, that replaces `threshold` in a prediction. */
    thresholdInput: values.optionalText,
  }),
  v.strictObject({
    /**
     * Returns the parts of an image, from scores of classes for each pixel: a `list` of
     * `{ label, index, mask }`. A mask has the size of the image: its part is white, the rest black.
     */
    step: v.literal('segments'),
    /** Names of the classes. Without them, `label` is the index as text. */
    labels: v.optional(labelsSchema),
  }),
  v.strictObject({
    /**
     * Returns the parts of an image as `segments` does, with a `score` each, from probabilities of the
     * classes of masks. The last class says that a mask has no object.
     */
    step: v.literal('panoptic'),
    /** Name of the tensor with a score of each pixel for each mask. */
    masks: values.textSchema,
    /** Names of the classes. Without them, `label` is the index as text. */
    labels: v.optional(labelsSchema),
    /** Score above which a mask is a part. Default: 0.9. */
    threshold: v.optional(v.number()),
    /** Name of an optional input, a `float32`, that replaces `threshold` in a prediction. */
    thresholdInput: values.optionalText,
  }),
  v.strictObject({
    /** Scales the last two dimensions to the size of the image of the prediction. */
    step: v.literal('resize'),
    /** Filter, as PyTorch has it. */
    by: v.picklist(['bilinear', 'bicubic']),
  }),
  v.strictObject({
    /** Returns an `image` in gray: the smallest number is black, and the largest is white. */
    step: v.literal('depth'),
  }),
  v.strictObject({
    /** Returns the `image` of the prediction with the numbers, from 0 to 1, as its opacity. */
    step: v.literal('cutout'),
  }),
])

/** Step that turns an output of the model into what a person reads. */
export type Step = v.InferOutput<typeof variants>

// The type is given because TypeScript infers types of catalogs only to a certain depth.
export const stepSchema: v.GenericSchema<Step> = variants

/** Place of the names of classes. */
export type Labels = NonNullable<Extract<Step, { step: 'top-k' }>['labels']>
