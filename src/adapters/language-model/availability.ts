/** Tells whether a session with these options can be created. */
import type { ModelState } from '../../types/index.ts'
import { type Endpoint, fetchModelCard, type ModelCard } from './endpoint.ts'
import { toException } from './errors.ts'
import { toSampling } from './sampling.ts'
import type {
  Availability,
  LanguageModelCreateCoreOptions,
  LanguageModelExpected,
  LanguageModelMessageType,
} from './types.ts'

/** Types of output: text, and calls of tools. */
const OUTPUTS: readonly LanguageModelMessageType[] = ['text', 'tool-call']

const neverAborted = new AbortController().signal

/** Resolves with the availability. Rejects with `UnknownError` if it cannot be found out. */
export async function computeAvailability(
  open: () => Promise<Endpoint>,
  options: LanguageModelCreateCoreOptions,
  { languages, legacy }: { languages?: readonly string[]; legacy: boolean },
): Promise<Availability> {
  const { expectedInputs = [], expectedOutputs = [] } = options
  const hasLanguages = [...expectedInputs, ...expectedOutputs].every((expected) =>
    knowsLanguages(expected, languages),
  )
  const hasOutputs = expectedOutputs.every(({ type }) => OUTPUTS.includes(type))
  if (!hasLanguages || !hasOutputs || !hasSampling(options, legacy)) return 'unavailable'
  try {
    const endpoint = await open()
    const states = await endpoint.server.models.list()
    const state = states.find(({ tag }) => tag === endpoint.model)
    const availability = state?.type === 'model' ? toAvailability(state) : 'unavailable'
    if (availability === 'unavailable' || expectedInputs.every(isAlwaysTaken)) return availability
    const card = await fetchModelCard(endpoint, neverAborted)
    return expectedInputs.every(({ type }) => takes(type, card)) ? availability : 'unavailable'
  } catch (thrown) {
    throw toException(thrown, 'UnknownError')
  }
}

function toAvailability({ status, servedBy, device, bytes }: ModelState): Availability {
  // The size of a hub's model is unknown until its files were looked up, and so is its fit.
  const isUnfit = servedBy === null && device === null && bytes !== null
  if (isUnfit) return 'unavailable'
  if (servedBy === 'upstream' || status === 'loaded' || status === 'stored') return 'available'
  return status === 'loading' ? 'downloading' : 'downloadable'
}

const isAlwaysTaken = ({ type }: LanguageModelExpected): boolean =>
  type !== 'image' && type !== 'audio'

function takes(type: LanguageModelMessageType, { capabilities }: ModelCard): boolean {
  return type === 'image' ? capabilities.image_input.supported : type !== 'audio'
}

function hasSampling(options: LanguageModelCreateCoreOptions, legacy: boolean): boolean {
  try {
    toSampling(options, legacy)
    return true
  } catch {
    return false
  }
}

/** Returns `true` if the model knows the languages, or a language of which each is a variety. */
function knowsLanguages(
  { languages: wanted = [] }: LanguageModelExpected,
  known: readonly string[] | undefined,
): boolean {
  return wanted.every((tag) => {
    const { language } = new Intl.Locale(tag)
    return known
      ? known.some((one) => new Intl.Locale(one).language === language)
      : names.of(language) !== undefined
  })
}

const names = new Intl.DisplayNames(['en'], { type: 'language', fallback: 'none' })
