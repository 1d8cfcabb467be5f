/** The options of the test server: models and predictors with scripted results. */
import type { GenerationRequest, Signature, Tag } from '../../types/index.ts'
import type { ScriptedAnswer } from './answers.ts'

/** Options that models and predictors share. */
export interface TestEntry {
  tag: Tag
  /** Display name. Default: the tag. */
  name?: string
  /** Download size in bytes that the state reports. Default: 1,000. */
  bytes?: number
  /**
   * Called in the middle of each load, which ends when it resolves and fails when it rejects.
   * Default: loads end at once.
   */
  load?: (signal: AbortSignal) => Promise<void> | void
}

/** A language model with scripted answers. */
export interface TestModel extends TestEntry {
  /** The answers in the order of the requests, or a function that is called for each request. */
  answers:
    | readonly ScriptedAnswer[]
    | ((request: GenerationRequest) => ScriptedAnswer | Promise<ScriptedAnswer>)
  /** Maximum number of tokens of prompt and completion together. Default: 4,096. */
  maxInputTokens?: number
}

/** A predictor whose outputs the test computes. */
export interface TestPredictor extends TestEntry {
  signature: Signature
  /** Returns the outputs for the inputs, both by name. */
  predict(
    inputs: Record<string, unknown>,
  ): Record<string, unknown> | Promise<Record<string, unknown>>
}

/** An embedding model whose vectors the test computes. */
export interface TestEmbedder extends TestEntry {
  /** Length of the vectors. Requests for fewer dimensions get the first numbers of each vector. */
  dimensions: number
  /** Returns the vector of a text. */
  embed(text: string): readonly number[] | Promise<readonly number[]>
}

/** Options of {@link createTestServer}. */
export interface TestServerOptions {
  models?: readonly TestModel[]
  predictors?: readonly TestPredictor[]
  embedders?: readonly TestEmbedder[]
  /** API keys of which each request over HTTP needs one. Default: no key is needed. */
  apiKeys?: readonly string[]
  /** Origin of the endpoints. Default: that of the page, or `http://localhost`. */
  origin?: string
}
