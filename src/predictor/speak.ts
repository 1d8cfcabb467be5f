/** Speaks texts with a predictor, one sentence after the other. */
import type { Speaker } from '../catalog/schema.ts'
import { InoriginError } from '../error.ts'
import type { SpeechPart, SpeechRequest } from '../types/index.ts'
import { throwInvalidInput, throwPredictorUnusable } from '../values/input-errors.ts'
import type { TextPredictor } from './embed.ts'
import { toSpeechInputs } from './speech-inputs.ts'
import type { TokenRow } from './text.ts'

/** Maximum length of what is spoken in one run, whose memory grows with the square of it. */
const MAX_RUN_CHARACTERS = 400

/** Returns the sentences of a text. A longer one than a run may have is divided, at a pause if possible. */
export const divideSentences = (text: string): string[] =>
  Array.from(new Intl.Segmenter(undefined, { granularity: 'sentence' }).segment(text)).flatMap(
    ({ segment }) => divideRuns(segment),
  )

function divideRuns(sentence: string): string[] {
  if (sentence.length <= MAX_RUN_CHARACTERS) return [sentence]
  const start = sentence.slice(0, MAX_RUN_CHARACTERS)
  const [pause = ''] = /^.*[,;:](?=\s)/s.exec(start) ?? []
  const [gap = ''] = /^.*\s/s.exec(start) ?? []
  const half = MAX_RUN_CHARACTERS / 2
  const whole = pause.length > half ? pause : gap
  // A half of a surrogate pair is no character.
  const cut = whole || start.replace(/[\uD800-\uDBFF]$/, '')
  return [cut, ...divideRuns(sentence.slice(cut.length))]
}

/**
 * Returns the sound of each sentence of a text, except for those that the client has already. Throws
 * `invalid_request` for what the voice cannot say.
 */
export function speakText(
  predictor: TextPredictor,
  entry: Speaker,
  request: SpeechRequest,
  signal: AbortSignal,
): AsyncGenerator<SpeechPart> {
  const { tag, speech } = entry
  const inputs = toSpeechInputs(entry, request)
  const rows = divideSentences(request.input)
    .map((sentence) => predictor.tokenize(speech.input, sentence, 'input'))
    .filter(({ ids }) => ids.length > 0)
  if (rows.length === 0)
    throwInvalidInput('input', `there is nothing that ${tag} can say. Send a text with words.`)
  return speakRows(predictor, entry, rows.slice(request.skippedSentences), inputs, signal)
}

async function* speakRows(
  predictor: TextPredictor,
  { tag, speech }: Speaker,
  rows: readonly TokenRow[],
  inputs: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): AsyncGenerator<SpeechPart> {
  for (const row of rows) {
    const { outputs } = await predictor.predictTokens(speech.input, [row], signal, inputs)
    const data = (outputs[speech.output] as { data?: unknown } | undefined)?.data
    if (!(data instanceof Float32Array))
      throwPredictorUnusable(tag, `outputs.${speech.output}`, 'it is no sound.')
    if (!data.every(Number.isFinite)) {
      const what = `${tag} produced NaN or Infinity. Load another export of it.`
      throw new InoriginError('internal', what, { code: 'not_finite' })
    }
    yield { type: 'audio', samples: toSamples(data), tokens: row.ids.length }
  }
}

/** Returns samples from -1 to 1 as integers of 16 bits. Those beyond are clipped. */
const toSamples = (data: Float32Array): Int16Array<ArrayBuffer> =>
  Int16Array.from(data, (sample) => Math.round(Math.max(-1, Math.min(1, sample)) * 32_767))
