/** Checks how speech is to be written down, before its model is loaded. */
import type { TextDecoderLayout } from '../catalog/decoder-schema.ts'
import type { PredictorEntry } from '../catalog/schema.ts'
import { InoriginError } from '../error.ts'
import type { TranscriptionRequest } from '../types/index.ts'
import { throwInvalidInput } from '../values/input-errors.ts'

type Speech = TextDecoderLayout['speech']

/** Language of models that know only one. */
export const ONLY_LANGUAGE = 'en'

/** Returns the output of a decoder with the attention of a layer to what the encoder returned. */
export const toAttentionOutput = (layer: number): string => `cross_attentions.${layer}`

/** Throws `invalid_request` for a language that the model does not know. */
export function assertLanguage(speech: Speech, language: string, path: string): void {
  const { languages } = speech ?? {}
  if (languages ? Object.hasOwn(languages, language) : language === ONLY_LANGUAGE) return
  if (!languages) throwInvalidInput(path, `must be "${ONLY_LANGUAGE}": the model knows no other.`)
  const known = Object.keys(languages).join(', ')
  throwInvalidInput(path, `must be one of ${known}, not ${JSON.stringify(language)}.`)
}

/** Throws `invalid_request` for what the model cannot do, by the field of the request. */
export function assertTranscribes(entry: PredictorEntry, request: TranscriptionRequest): void {
  const { tag, implementations } = entry
  const refuse = (param: string, why: string): never => {
    throw new InoriginError('invalid_request', `${tag} ${why}`, {
      code: 'unsupported_parameter',
      param,
    })
  }
  for (const { decoder } of implementations) {
    const { speech } = decoder ?? {}
    if (request.task === 'translate' && !speech?.tasks)
      refuse(
        'model',
        'does not translate: its files have no `task_to_id`. Use a multilingual model.',
      )
    if (request.language !== undefined) assertLanguage(speech, request.language, 'language')
    if (request.hasWords && !speech?.alignment)
      refuse(
        'timestamp_granularities',
        'has no times of words: its decoder must return `cross_attentions.N`, and its ' +
          '`generation_config.json` must have `alignment_heads`. Ask for segments, or use such an export.',
      )
  }
}
