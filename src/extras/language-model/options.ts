/** Converts the options of the methods. */
import { domException } from './errors.ts'
import {
  assertTools,
  optionalMember,
  requiredMember,
  toDictionary,
  toDouble,
  toEnum,
  toFunction,
  toMessages,
  toObject,
  toSequence,
  toSignal,
  toText,
  toTool,
} from './messages.ts'
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

/** Returns a function that reads one option after the other. */
function optionsReader(value: unknown) {
  const given = toDictionary(value, 'options')
  return <T>(name: string, convert: (value: unknown, what: string) => T): T | undefined =>
    optionalMember(given, name, 'options', convert)
}

/** Converts the options of `availability()`. */
export function toCoreOptions(value: unknown): LanguageModelCreateCoreOptions {
  const read = optionsReader(value)
  return {
    expectedInputs: read('expectedInputs', toExpectedList),
    expectedOutputs: read('expectedOutputs', toExpectedList),
    samplingMode: read('samplingMode', (mode, what) => toEnum(mode, what, SAMPLING_MODES)),
    temperature: read('temperature', toDouble),
    tools: read('tools', (tools, what) => toSequence(tools, what, toTool)),
    topK: read('topK', toDouble),
  }
}

/** Converts the options of `create()`. */
export function toCreateOptions(value: unknown): LanguageModelCreateOptions {
  const core = toCoreOptions(value)
  assertTools(core.tools ?? [], core.expectedOutputs)
  const read = optionsReader(value)
  return {
    ...core,
    initialPrompts: read('initialPrompts', toMessages),
    monitor: read('monitor', toFunction) as LanguageModelCreateOptions['monitor'],
    signal: read('signal', toSignal),
  }
}

/** Converts the options of `append()` and `clone()`. */
export const toSignalOptions = (value: unknown): LanguageModelSignalOptions => ({
  signal: optionsReader(value)('signal', toSignal),
})

/** Converts the options of `prompt()`. */
export function toPromptOptions(value: unknown): LanguageModelPromptOptions {
  const read = optionsReader(value)
  const omits = read('omitResponseConstraintInput', Boolean) ?? false
  const responseConstraint = read('responseConstraint', toObject)
  const signal = read('signal', toSignal)
  if (omits && responseConstraint === undefined)
    throw new TypeError('omitResponseConstraintInput requires a responseConstraint.')
  return { omitResponseConstraintInput: omits, responseConstraint, signal }
}

const toExpectedList = (value: unknown, what: string) => toSequence(value, what, toExpected)

/**
 * Converts an expected input or output, with its languages in their canonical form. Throws a
 * `RangeError` for a tag that no language can have.
 */
function toExpected(value: unknown, what: string): LanguageModelExpected {
  const given = toDictionary(value, what)
  const languages = optionalMember(given, 'languages', what, (tags, place) =>
    toSequence(tags, place, toText),
  )
  return {
    type: requiredMember(given, 'type', what, (type, place) => toEnum(type, place, MESSAGE_TYPES)),
    ...(languages && { languages: Intl.getCanonicalLocales(languages) }),
  }
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

// Sampling modes, and the parameters that stand behind them.

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
  const defaults = { topK: defaultTopK, temperature: defaultTemperature }
  if (!legacy || (topK === undefined && temperature === undefined)) {
    const mode = samplingMode ?? 'balanced'
    if (mode !== 'balanced') {
      const own = TEMPERATURES[mode]
      return { mode, ...defaults, temperature: own, fields: { temperature: own } }
    }
    const fields = { temperature: defaultTemperature, top_k: defaultTopK }
    return { mode, ...defaults, fields: legacy ? fields : {} }
  }
  if (topK === undefined || temperature === undefined)
    throw domException('NotSupportedError', 'Give both topK and temperature, or neither.')
  if (!(topK >= 1)) throw new RangeError(`topK is ${topK}. It must be at least 1.`)
  if (!(temperature >= 0))
    throw new RangeError(`temperature is ${temperature}. It must be at least 0.`)
  const own = {
    topK: Math.min(Math.floor(topK), maxTopK),
    temperature: Math.min(temperature, maxTemperature),
  }
  return { mode: null, ...own, fields: { temperature: own.temperature, top_k: own.topK } }
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
