/** Types of the benchmark's result. docs/bench.md describes each field of the JSON file. */
import type { Device, Explanation, Tag } from '../../src/index.ts'

/** Version of the JSON format. It is raised when a field changes its meaning. */
export const SCHEMA = 1

export type EffortName = 'short' | 'normal' | 'thorough'

/** Amount of work of one benchmark. */
export interface Effort {
  /** Number of rounds of each measurement. Medians over the rounds are reported. */
  rounds: number
  /** Time in seconds that one measured answer takes, about. */
  answerSeconds: number
  /** Tokens of the cold prompt, unless the context of the model is shorter. */
  promptTokens: number
  /** Tokens of the long context, unless the context of the model is shorter. */
  longContextTokens: number
  /** Number of runs of the predictor. */
  predictions: number
}

/** Choices of the user. */
export interface BenchSettings extends Effort {
  tag: Tag
  device: Device | 'auto'
  effort: EffortName
}

/** Properties of the browser and the device that explain the measurements. */
export interface Environment {
  browser: string
  browserVersion: string
  /** Name of the operating system, such as `Linux` or `Android`. */
  platform: string
  cores: number
  /** Gibibytes of memory as the browser reports them, rounded and capped; `null` if it does not. */
  deviceMemory: number | null
  crossOriginIsolated: boolean
  /** Features of WebAssembly, as `server.explain()` reports them. */
  wasm: Explanation['device']['wasm']
  /** WebGPU adapter; `null` if there is none. */
  adapter: AdapterInfo | null
  /** Verdict of the library's self-test of the GPU: `passed`, or why there is none. */
  selfTest: string
}

export interface AdapterInfo {
  vendor: string
  architecture: string
  device: string
  description: string
  /** `true` if the adapter runs on the CPU. */
  software: boolean
  /** Features that make models faster, such as `shader-f16`. */
  features: string[]
}

/** Implementation that ran. */
export interface UsedImplementation {
  id: string
  device: Device
  /** Size of its files in bytes. */
  bytes: number
}

/** Rate of an answer after a prompt of this length. */
export interface DecodeRate {
  contextTokens: number
  /** `null` if the answer was too short for a rate. */
  tokensPerSecond: number | null
  /** The same with drafts off. Where answers have no drafts, it is `tokensPerSecond`. */
  tokensPerSecondWithoutDrafts: number | null
  /** Draft tokens that became part of one answer. */
  acceptedDraftTokens: number
  /** Draft tokens that were computed for one answer, but did not become part of it. */
  rejectedDraftTokens: number
}

/** Results of all measurements. Times are in milliseconds. */
export interface Measurements {
  implementation: UsedImplementation
  /** Tokens of one answer whose rate is measured. */
  answerTokens: number
  load: {
    /** Download and load; `null` if the files were stored and too large to download again. */
    downloadMs: number | null
    /** Load from the store, in a new worker. */
    storedMs: number
  }
  firstToken: {
    promptTokens: number
    coldMs: number
    secondTurnPromptTokens: number
    /** Tokens of the second prompt that the prefix cache had. */
    secondTurnCachedTokens: number
    secondTurnMs: number
  }
  /** Tokens of the cold prompt over the time to its first token. */
  prefillTokensPerSecond: number
  decode: { short: DecodeRate; middle: DecodeRate; long: DecodeRate }
  /** Time of a request to `/v1` that computes nothing. */
  overheadMs: number
  concurrent: {
    streams: number
    /** Tokens per second of one stream alone, with its prompt. */
    aloneTokensPerSecond: number
    /** Tokens per second of all streams together, with their prompts. */
    togetherTokensPerSecond: number
    /** The second over the first. */
    ratio: number
  }
  /** Runs of a predictor; `null` if the catalog has none that the benchmark knows. */
  predict: { tag: Tag; device: Device; milliseconds: number } | null
}

/** Content of the JSON file. */
export interface BenchResult extends Measurements {
  schema: typeof SCHEMA
  /** Version of inorigin. */
  version: string
  /** Day of the benchmark, as `YYYY-MM-DD` in UTC. */
  date: string
  /** Time in seconds that the whole benchmark took. */
  seconds: number
  settings: BenchSettings
  environment: Environment
}
