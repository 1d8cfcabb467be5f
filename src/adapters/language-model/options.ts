/** Converts the options of the methods. */
import {
  optionalMember,
  requiredMember,
  toDictionary,
  toDouble,
  toEnum,
  toFunction,
  toObject,
  toSequence,
  toSignal,
  toText,
} from './conversions.ts'
import { domException } from './errors.ts'
import { toMessages } from './messages.ts'
import { assertTools, toTool } from './tool-messages.ts'
import {
  MESSAGE_TYPES,
  SAMPLING_MODES,
  type LanguageModelCreateCoreOptions,
  type LanguageModelCreateOptions,
  type LanguageModelExpected,
  type LanguageModelMessageType,
  type LanguageModelPromptOptions,
  type LanguageModelSignalOptions,
} from './types.ts'

/** Converts the options of `availability()`. */
export function toCoreOptions(value: unknown): LanguageModelCreateCoreOptions {
  const given = toDictionary(value, 'options')
  const expectedInputs = optionalMember(given, 'expectedInputs', 'options', toExpectedList)
  const expectedOutputs = optionalMember(given, 'expectedOutputs', 'options', toExpectedList)
  return {
    expectedInputs,
    expectedOutputs,
    samplingMode: optionalMember(given, 'samplingMode', 'options', (mode, what) =>
      toEnum(mode, what, SAMPLING_MODES),
    ),
    temperature: optionalMember(given, 'temperature', 'options', toDouble),
    tools: optionalMember(given, 'tools', 'options', (tools, what) =>
      toSequence(tools, what, toTool),
    ),
    topK: optionalMember(given, 'topK', 'options', toDouble),
  }
}

/** Converts the options of `create()`. */
export function toCreateOptions(value: unknown): LanguageModelCreateOptions {
  const core = toCoreOptions(value)
  assertTools(core.tools ?? [], core.expectedOutputs)
  const given = toDictionary(value, 'options')
  return {
    ...core,
    initialPrompts: optionalMember(given, 'initialPrompts', 'options', toMessages),
    monitor: optionalMember(
      given,
      'monitor',
      'options',
      toFunction,
    ) as LanguageModelCreateOptions['monitor'],
    signal: optionalMember(given, 'signal', 'options', toSignal),
  }
}

/** Converts the options of `append()` and `clone()`. */
export const toSignalOptions = (value: unknown): LanguageModelSignalOptions => ({
  signal: optionalMember(toDictionary(value, 'options'), 'signal', 'options', toSignal),
})

/** Converts the options of `prompt()`. */
export function toPromptOptions(value: unknown): LanguageModelPromptOptions {
  const given = toDictionary(value, 'options')
  const omits = optionalMember(given, 'omitResponseConstraintInput', 'options', Boolean) ?? false
  const responseConstraint = optionalMember(given, 'responseConstraint', 'options', toObject)
  const signal = optionalMember(given, 'signal', 'options', toSignal)
  if (omits && responseConstraint === undefined) {
    throw new TypeError('omitResponseConstraintInput requires a responseConstraint.')
  }
  return { omitResponseConstraintInput: omits, responseConstraint, signal }
}

const toExpectedList = (value: unknown, what: string): LanguageModelExpected[] =>
  toSequence(value, what, toExpected)

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
export function toExpectedTypes(
  expected: readonly LanguageModelExpected[] = [],
): LanguageModelMessageType[] {
  return [...new Set<LanguageModelMessageType>(['text', ...expected.map(({ type }) => type)])]
}

/** Throws if the document of the page was removed, as that of a closed frame. */
export function assertActive(): void {
  if (typeof document === 'undefined' || document.defaultView) return
  throw domException('InvalidStateError', 'The document of this LanguageModel is not active.')
}
