/** Estimates the memory of implementations. */
import type { Implementation } from './schema.ts'

/** Ratio of the memory of a running model to the size of its weights. */
const MEMORY_PER_WEIGHT_BYTE = 1.25

/**
 * Ratio of the memory of a compiled vocabulary, which constrained answers need, to the size of
 * `tokenizer.json`. Qwen3's has 151,669 tokens in 11.4 MB and takes 91 MB.
 */
const VOCABULARY_PER_TOKENIZER_BYTE = 8

type Sized = Pick<Implementation, 'requires' | 'resources'>

export const sumBytes = (files: readonly { bytes: number }[]): number =>
  files.reduce((sum, { bytes }) => sum + bytes, 0)

/** Returns the bytes of memory that files of weights need to run. */
export const estimateMemoryBytes = (weights: readonly { bytes: number }[]): number =>
  Math.ceil(sumBytes(weights) * MEMORY_PER_WEIGHT_BYTE)

export const sumResourceBytes = ({ resources }: Sized): number => sumBytes(resources)

/** Returns `true` if the files are known. Those of MLC models are looked up at the first load. */
export const hasResources = ({ resources }: Sized): boolean => resources.length > 0

/** Returns the bytes of memory needed, from the catalog or estimated from the files. */
export const getMemoryBytes = ({ requires, resources }: Sized): number =>
  requires?.memory ?? estimateMemoryBytes(resources)

/** Returns the bytes of memory that constrained answers need beside the weights. */
export const estimateVocabularyBytes = ({ resources }: Sized): number =>
  sumBytes(resources.filter(({ name }) => name === 'tokenizer.json')) *
  VOCABULARY_PER_TOKENIZER_BYTE
