/** Defines the schema of decoders, which write a text token by token. */
import * as v from 'valibot'
import * as values from './value-schemas.ts'

const tokenSchema = values.wholeNumberSchema

/** Rules of the next token, as `generation_config.json` has them. */
const tokenRules = {
  /** Maximum number of new tokens of a text, that of its end included. */
  maxTokens: values.optionalCount,
  /** Number of new tokens before which no text ends. Default: 0. */
  minTokens: v.optional(tokenSchema),
  /** Length of sequences of tokens that a text has only once. Default: it may repeat all. */
  noRepeat: values.optionalCount,
  /** Divisor of the scores of tokens that a text already has. Default: 1. */
  repetitionPenalty: v.optional(v.pipe(v.number(), v.minValue(Number.MIN_VALUE))),
  /** Token that each text begins with. Default: the best one. */
  firstToken: v.optional(tokenSchema),
  /** Token that a text of the maximum length ends with. Default: the best one. */
  lastToken: v.optional(tokenSchema),
  /** Tokens that no text has. */
  suppress: v.optional(v.array(tokenSchema)),
  /** Tokens that no text begins with. */
  suppressFirst: v.optional(v.array(tokenSchema)),
  /** Sequences of tokens that no text has. */
  exclude: v.optional(v.array(values.nonEmptyArray(tokenSchema))),
}

/** Tokens with which a model of speech knows what to write. */
const speechSchema = v.strictObject({
  /** Tokens of the languages by their codes, such as `en`. Default: the model knows only one. */
  languages: v.optional(v.record(values.textSchema, tokenSchema)),
  /** Tokens of the tasks. */
  tasks: v.optional(
    v.strictObject({
      /** Token to write the language of the speech. */
      transcribe: tokenSchema,
      /** Token to write English. */
      translate: tokenSchema,
    }),
  ),
  /** Token that says that there are no timestamps. Those of the timestamps follow it, 20 ms each. */
  noTimestamps: tokenSchema,
  /** Maximum number of tokens of a window, with those that say what to write. Default: any. */
  positions: values.optionalCount,
  /** Greatest number of the first timestamp of a window. Default: any. */
  maxInitialTimestamp: v.optional(tokenSchema),
  /**
   * Heads of the decoder, each as its layer and its number, whose attention follows the speech. The graph
   * must return the attention of these layers as `cross_attentions.N`. Default: words have no times.
   */
  alignment: v.optional(values.nonEmptyArray(v.tuple([tokenSchema, tokenSchema]))),
})

export const decoderSchema = v.strictObject({
  /** Output of the signature with the text: a `string`. */
  output: values.textSchema,
  /** Name of the graph that the inputs are bound to, the encoder, among the resources. */
  encoder: values.pathSchema,
  /** Name of the graph of the decoder, among the resources. */
  graph: values.pathSchema,
  /** Name of the graph for each token after the first run, if it is one of its own. */
  nextGraph: v.optional(values.pathSchema),
  /** Name of the resource with the tokenizer of the text. */
  tokenizer: values.pathSchema,
  /** `true` to remove spaces before punctuation from the text. Default: false. */
  tidy: values.optionalFlag,
  /** Tokens from which a text is written. They are no part of it. */
  start: values.nonEmptyArray(tokenSchema),
  /** Tokens that end a text. */
  end: v.array(tokenSchema),
  ...tokenRules,
  /** Name of an optional input, an `int32`, that replaces `maxTokens` in a prediction. */
  maxTokensInput: values.optionalText,
  /** Tasks of a model that has several. */
  tasks: v.optional(
    v.strictObject({
      /** Name of an optional input, a `string`, with the name of a task. */
      input: values.textSchema,
      /** Tasks by name, with the rules that they replace. */
      named: v.record(
        values.textSchema,
        v.strictObject({
          /** Text to put before each text. */
          prefix: values.optionalString,
          ...tokenRules,
        }),
      ),
    }),
  ),
  /**
   * Speech that the decoder writes down. The optional inputs `language`, `task` and
   * `return_timestamps` say how. The outputs are `text`, `chunks` and `language`.
   */
  speech: v.optional(speechSchema),
  /** Languages of a translator, each with a token of the tokenizer. */
  languages: v.optional(
    v.strictObject({
      /** Name of an input, a `string`, with the language of the given texts. */
      source: values.textSchema,
      /** Name of an input, a `string`, with the language to translate to. */
      target: values.textSchema,
      /** Languages, such as `eng_Latn`. */
      names: values.nonEmptyArray(values.textSchema),
      /** Token of a language, in which `{}` stands for its name. Default: `{}`. */
      token: values.optionalText,
    }),
  ),
})

/** Decoder that writes the text of a prediction. */
export type TextDecoderLayout = v.InferOutput<typeof decoderSchema>
/** Rules of the next token of a text. */
export type TokenRules = Pick<TextDecoderLayout, keyof typeof tokenRules>
