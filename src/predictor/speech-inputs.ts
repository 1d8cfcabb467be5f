/** Inputs that say how a predictor speaks: its voice and its speed. */
import { DEFAULT_VOICE, listVoices } from '../catalog/find-entry.ts'
import type { Speaker } from '../catalog/schema.ts'
import { InoriginError } from '../error.ts'
import type { SpeechRequest } from '../types/index.ts'

/** Maximum number of voices that an error names. */
const MAX_NAMED_VOICES = 20

/**
 * Returns the inputs that say how a text is spoken. Throws `invalid_request` for an unknown voice, and
 * for a speed that the model does not have.
 */
export function toSpeechInputs(
  entry: Speaker,
  { voice, speed }: Pick<SpeechRequest, 'voice' | 'speed'>,
): Record<string, unknown> {
  const { tag, signature, speech } = entry
  const inputs: Record<string, unknown> = {}
  const find = (name: string | undefined) => signature.inputs.find((input) => input.name === name)
  if (voice !== DEFAULT_VOICE) {
    const members = find(speech.voice)?.enumeration ?? []
    const member = members.find(({ name, value }) => name === voice || String(value) === voice)
    if (speech.voice === undefined || !member) {
      const voices = listVoices(entry)
      const more = voices.length - MAX_NAMED_VOICES
      const named = voices.slice(0, MAX_NAMED_VOICES).join(', ')
      const all = more > 0 ? `${named} and ${more} more` : named
      const what = `voice ${JSON.stringify(voice)} is unknown to ${tag}.`
      throw invalidValue('voice', `${what} Its voices are ${all}.`)
    }
    inputs[speech.voice] = member.value
  }
  if (speed === 1) return inputs
  const numbers: unknown = find(speech.speed?.input)?.defaultValue
  if (!speech.speed || !Array.isArray(numbers)) {
    const what = `speed must be 1, not ${speed}: the speed of ${tag} is fixed in its graph.`
    throw invalidValue('speed', `${what} Leave it out.`)
  }
  const { input, index } = speech.speed
  return { ...inputs, [input]: numbers.with(index, Number(numbers[index]) / speed) }
}

const invalidValue = (param: string, what: string) =>
  new InoriginError('invalid_request', what, { code: 'invalid_value', param })
