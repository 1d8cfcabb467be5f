/** Converts the options of the methods. */
import { domException } from './errors.ts'
import { assertTools, toMessages, toTool } from './messages.ts'
import {
  type LanguageModelCreateCoreOptions,
  type LanguageModelCreateOptions,
  type LanguageModelExpected,
  type LanguageModelMessageType,
  type LanguageModelParams,
  type LanguageModelPromptOptions,
  type LanguageModelSamplingMode,
  type LanguageModelSignalOptions,
  MESSAGE_TYPES,
  SAMPLING_MODES,
} from './types.ts'
import {
  readDictionary,
  toDouble,
  toEnum,
  toFunction,
  toObject,
  toSequence,
  toSignal,
  toText,
} from './web-idl.ts'

/** Converts the options of `availability()`. */
export function toCoreOptions(value: unknown): LanguageModelCreateCoreOptions {
  const { optional } = readDictionary(value)
  return {
    expectedInputs: optional('expectedInputs', toSequence(toExpected)),
    expectedOutputs: optional('expectedOutputs', toSequence(toExpected)),
    samplingMode: optional('samplingMode', toEnum(SAMPLING_MODES)),
    temperature: optional('temperature', toDouble),
    tools: optional('tools', toSequence(toTool)),
    topK: optional('topK', toDouble),
  }
}

/** Converts the options of `create()`. */
export function toCreateOptions(value: unknown): LanguageModelCreateOptions {
  const core = toCoreOptions(value)
  assertTools(core.tools ?? [], core.expectedOutputs)
  const { optional } = readDictionary(value)
  return {
    ...core,
    initialPrompts: optional('initialPrompts', toMessages),
    monitor: optional('monitor', toFunction) as LanguageModelCreateOptions['monitor'],
    signal: optional('signal', toSignal),
  }
}

/** Converts the options of `append()` and `clone()`. */
export const toSignalOptions = (value: unknown): LanguageModelSignalOptions => ({
  signal: readDictionary(value).optional('signal', toSignal),
})

/** Converts the options of `prompt()`. */
export function toPromptOptions(value: unknown): LanguageModelPromptOptions {
  const { optional } = readDictionary(value)
  const omits = optional('omitResponseConstraintInput', Boolean) ?? false
  const responseConstraint = optional('responseConstraint', toObject)
  const signal = optional('signal', toSignal)
  if (omits && responseConstraint === undefined)
    throw new TypeError('omitResponseConstraintInput requires a responseConstraint.')
  return { omitResponseConstraintInput: omits, responseConstraint, signal }
}

/**
 * Converts an expected input or output, with its languages in their canonical form. Throws a
 * `RangeError` for a tag that no language can have.
 */
function toExpected(value: unknown, what: string): LanguageModelExpected {
  const { optional, required } = readDictionary(value, what)
  const languages = optional('languages', toSequence(toText))
  const type = required('type', toEnum(MESSAGE_TYPES))
  return { type, ...(languages && { languages: Intl.getCanonicalLocales(languages) }) }
}

/** Returns the types of input that a session takes. */
export const toExpectedTypes = (
  expected: readonly LanguageModelExpected[] = [],
): LanguageModelMessageType[] => [
  ...new Set<LanguageModelMessageType>(['text', ...expected.map(({ type }) => type)]),
]

/** Throws if the document of the page was removed, as that of a closed frame. */
export function assertActive(): void {
  if (typeof document === 'undefined' || document.defaultView) return
  throw domException('InvalidStateError', 'The document of this LanguageModel is not active.')
}

export const PARAMS: LanguageModelParams = Object.freeze({
  defaultTopK: 40,
  maxTopK: 128,
  defaultTemperature: 1,
  maxTemperature: 2,
})

/** Temperatures of the modes. `balanced` is what the model itself prefers. */
const TEMPERATURES: Readonly<Record<Exclude<LanguageModelSamplingMode, 'balanced'>, number>> = {
  'most-predictable': 0,
  predictable: 0.3,
  'slightly-predictable': 0.6,
  'slightly-creative': 1.15,
  creative: 1.3,
  'most-creative': 1.5,
}

/** Sampling parameters of a session. */
export interface Sampling {
  /** `null` if the page gave parameters instead. */
  mode: LanguageModelSamplingMode | null
  topK: number
  temperature: number
  fields: { temperature?: number; top_k?: number }
}

/**
 * Returns how a session samples. Without `legacy`, parameters have no effect.
 *
 * @throws RangeError for parameters below their minimum.
 * @throws DOMException `NotSupportedError` if only one of the two parameters is given.
 */
export function toSampling(
  { samplingMode, topK, temperature }: LanguageModelCreateCoreOptions,
  legacy: boolean,
): Sampling {
  const { defaultTopK, maxTopK, defaultTemperature, maxTemperature } = PARAMS
  if (!legacy || (topK === undefined && temperature === undefined)) {
    const mode = samplingMode ?? 'balanced'
    const own = mode === 'balanced' ? defaultTemperature : TEMPERATURES[mode]
    const all = { temperature: own, ...(mode === 'balanced' && { top_k: defaultTopK }) }
    const fields = mode === 'balanced' && !legacy ? {} : all
    return { mode, topK: defaultTopK, temperature: own, fields }
  }
  if (topK === undefined || temperature === undefined)
    throw domException('NotSupportedError', 'Give both topK and temperature, or neither.')
  if (!(topK >= 1)) throw new RangeError(`topK is ${topK}. It must be at least 1.`)
  if (!(temperature >= 0))
    throw new RangeError(`temperature is ${temperature}. It must be at least 0.`)
  const used = Math.min(temperature, maxTemperature)
  const top = Math.min(Math.floor(topK), maxTopK)
  return { mode: null, topK: top, temperature: used, fields: { temperature: used, top_k: top } }
}

/** Throws if the page gave both a mode and parameters, which contradict each other. */
export function assertOneSampling(
  { samplingMode, topK, temperature }: LanguageModelCreateCoreOptions,
  legacy: boolean,
): void {
  if (!legacy || samplingMode === undefined) return
  if (topK === undefined && temperature === undefined) return
  throw new TypeError('Give either samplingMode, or topK and temperature.')
}
