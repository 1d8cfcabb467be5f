/** Describes a model by the metadata of its GGUF file, for lists of models. */
import type { Metadata } from './header.ts'
import { findNumber, findText, findTexts } from './metadata.ts'

/** Facts about a model. A fact that the file does not state is absent. */
export interface GgufCard {
  /** Name for people, such as `Gemma 3 270m`. */
  name?: string
  /** Identifier of the license, such as `apache-2.0`. */
  license?: string
  /** Number of parameters, such as `135M`. */
  size?: string
  /** Type of most weights, such as `Q4_K_M`. */
  quantization?: string
  /** Tokens of prompt and answer together. */
  contextTokens?: number
  /** Codes of languages, such as `en`. Default: none. */
  languages?: readonly string[]
}

/** Returns the facts. Throws `model_unusable` if one has the wrong type; the message names the key. */
export function describeModel(metadata: Metadata): GgufCard {
  const architecture = findText(metadata, 'general.architecture') ?? ''
  const card = {
    name: findText(metadata, 'general.name'),
    license: findText(metadata, 'general.license'),
    size: findText(metadata, 'general.size_label'),
    quantization: FILE_TYPES.get(findNumber(metadata, 'general.file_type') ?? -1),
    contextTokens: findNumber(metadata, `${architecture}.context_length`),
    languages: findTexts(metadata, 'general.languages'),
  }
  const stated = Object.entries(card).filter(([, value]) => value !== undefined && value !== '')
  return Object.fromEntries(stated) as GgufCard
}

/** Names of the types of most weights, by the numbers of `general.file_type`. */
const FILE_TYPES: ReadonlyMap<number, string> = new Map([
  [0, 'F32'],
  [1, 'F16'],
  [2, 'Q4_0'],
  [3, 'Q4_1'],
  [7, 'Q8_0'],
  [8, 'Q5_0'],
  [9, 'Q5_1'],
  [10, 'Q2_K'],
  [11, 'Q3_K_S'],
  [12, 'Q3_K_M'],
  [13, 'Q3_K_L'],
  [14, 'Q4_K_S'],
  [15, 'Q4_K_M'],
  [16, 'Q5_K_S'],
  [17, 'Q5_K_M'],
  [18, 'Q6_K'],
  [21, 'Q2_K_S'],
  [25, 'IQ4_NL'],
  [30, 'IQ4_XS'],
  [32, 'BF16'],
  [38, 'MXFP4'],
])
