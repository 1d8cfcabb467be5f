/** Forms of `POST /v1/audio/transcriptions` and `/translations`, and the formats of the response. */
import * as v from 'valibot'
import type {
  TranscribeOptions,
  TranscribedSegment,
  Transcript,
  TranscriptionEvent,
  TranscriptionRequest,
} from '../types/index.ts'
import { wireError } from './errors.ts'
import * as f from './fields.ts'
import { comment, frame, JSON_TYPE, SSE_TYPE } from './http.ts'
import type { EventEncoder } from './response-body.ts'

type Task = TranscribeOptions['task']

const file = v.pipe(
  v.instance(Blob, 'a file'),
  v.check(({ size }) => size > 0, 'a file that is not empty'),
)

/** Applies a rule to what the text of a form stands for. */
const read = <T extends v.GenericSchema>(toValue: (text: string) => unknown, rule: T) =>
  f.optional(
    v.pipe(
      v.unknown(),
      v.transform((value) => (typeof value === 'string' ? toValue(value) : value)),
      rule,
    ),
  )

const toNumber = (text: string): unknown =>
  text.trim() === '' || Number.isNaN(Number(text)) ? text : Number(text)
const toFlag = (text: string): unknown => ({ true: true, false: false })[text] ?? text

const common = {
  file,
  model: f.tagString,
  language: f.optional(f.nonEmptyString),
  prompt: f.optional(f.string),
  response_format: f.optional(f.oneOf(['json', 'text', 'srt', 'verbose_json', 'vtt'])),
  temperature: read(toNumber, f.numberBetween(0, 1)),
  seed: read(toNumber, f.integerAtLeast(0)),
  stream: read(toFlag, f.flag),
  chunking_strategy: f.rejectedField,
  include: f.rejectedField,
  known_speaker_names: f.rejectedField,
  known_speaker_references: f.rejectedField,
}

/** Schemas of the forms. Fields that would change the text and are not supported are refused. */
export const transcriptionSchemas = {
  transcribe: f.object({
    ...common,
    timestamp_granularities: f.optional(v.array(f.oneOf(['segment', 'word']), 'an array')),
  }),
  translate: f.object({ ...common, timestamp_granularities: f.rejectedField }),
}

type SpeechForm = v.InferOutput<(typeof transcriptionSchemas)[Task]>

/** Returns the first conflict between fields. */
export function findTranscriptionConflict({
  response_format: format = 'json',
  timestamp_granularities: wanted,
  stream,
}: SpeechForm): f.FieldConflict | undefined {
  if (stream && format !== 'json' && format !== 'text')
    return f.conflict('response_format', format, 'json or text with `stream`')
  if (wanted && format !== 'verbose_json')
    return f.conflict('response_format', format, 'verbose_json with `timestamp_granularities`')
  return undefined
}

/** Fields of the form, by those of the request in errors. */
export const transcriptionFieldNames: f.FieldNames = {
  rename: [
    [/^inputs\.(language|prompt)$/, '$1'],
    [/^inputs\.\w+$/, 'file'],
  ],
  reasoning: [],
}

/** Converts the form to a request. */
export function parseTranscription(form: SpeechForm, task: Task): TranscriptionRequest {
  const { file: sound, model, language, prompt, temperature, seed } = form
  return {
    task,
    model,
    file: sound,
    isStreamed: form.stream ?? false,
    ...(language && { language }),
    ...(prompt && { prompt }),
    ...(temperature && { temperature }),
    ...(typeof seed === 'number' && { seed }),
    hasSegments: !['json', 'text'].includes(form.response_format ?? 'json'),
    hasWords: form.timestamp_granularities?.includes('word') ?? false,
  }
}

/** Encodes what is said in the format of the form. Spaces are sent ahead of JSON as heartbeats. */
export function transcriptionEncoder(
  form: SpeechForm,
  task: Task,
): EventEncoder<TranscriptionEvent> {
  if (form.stream) return transcriptionStreamEncoder()
  const format = form.response_format ?? 'json'
  const isJson = format.endsWith('json')
  const encodeTranscript = {
    json: ({ text, duration }: Transcript) =>
      JSON.stringify({ text: text.trim(), usage: usageOf(duration) }),
    verbose_json: (transcript: Transcript) =>
      JSON.stringify(toVerboseJson(transcript, task, form.timestamp_granularities ?? ['segment'])),
    text: ({ text }: Transcript) => `${text.trim()}\n`,
    srt: ({ segments }: Transcript) => formatCues(segments, ','),
    vtt: ({ segments }: Transcript) => `WEBVTT\n\n${formatCues(segments, '.')}`,
  }[format]
  return {
    type: isJson ? JSON_TYPE : `text/${format === 'vtt' ? 'vtt' : 'plain'}; charset=utf-8`,
    encode(event) {
      if (event.type === 'finish') return encodeTranscript(event.transcript)
      return isJson && event.type === 'heartbeat' ? ' ' : ''
    },
    ...(!isJson && {
      // A text would read as speech, so the body breaks off.
      fail(error) {
        throw error
      },
    }),
  }
}

function transcriptionStreamEncoder(): EventEncoder<TranscriptionEvent> {
  let isBegun = false
  return {
    type: SSE_TYPE,
    encode(event) {
      if (event.type === 'heartbeat') return comment('heartbeat')
      if (event.type === 'finish')
        return frame({ type: 'transcript.text.done', text: event.transcript.text.trim() })
      const delta = isBegun ? event.text : event.text.trimStart()
      isBegun ||= delta !== ''
      return delta === '' ? '' : frame({ type: 'transcript.text.delta', delta })
    },
    fail: (error) => frame({ error: wireError(error) }),
  }
}

const usageOf = (seconds: number) => ({ type: 'duration', seconds })

function toVerboseJson(
  { text, language, duration, segments, words }: Transcript,
  task: Task,
  wanted: readonly string[],
) {
  return {
    task,
    language: toLanguageName(task === 'translate' ? 'en' : language),
    duration,
    text: text.trim(),
    ...(wanted.includes('segment') && { segments: segments.map(toSegmentJson) }),
    ...(wanted.includes('word') && { words }),
    usage: usageOf(duration),
  }
}

const toSegmentJson = (
  { seek, start, end, text, tokens, temperature, quality }: TranscribedSegment,
  id: number,
) => ({
  id,
  seek,
  start,
  end,
  text,
  tokens,
  temperature,
  avg_logprob: quality?.avgLogprob,
  compression_ratio: quality?.compressionRatio,
  no_speech_prob: quality?.noSpeechProb,
})

/** Languages whose names in Whisper are not those of the browser. */
const WHISPER_NAMES: Readonly<Partial<Record<string, string>>> = {
  bn: 'bengali',
  jw: 'javanese',
  mi: 'maori',
  my: 'myanmar',
  nn: 'nynorsk',
  tl: 'tagalog',
}

/** Returns the English name of a language, such as `german`. */
export function toLanguageName(code: string): string {
  const own = new Intl.DisplayNames(['en'], { type: 'language', languageDisplay: 'standard' })
  return WHISPER_NAMES[code] ?? own.of(code)?.toLowerCase() ?? code
}

/** Returns the segments as subtitles. SRT and WebVTT differ in the mark before milliseconds. */
const formatCues = (segments: readonly TranscribedSegment[], mark: string): string =>
  segments
    .filter(({ text }) => text.trim() !== '')
    .map(({ start, end, text }, index) => {
      const number = mark === ',' ? `${index + 1}\n` : ''
      const own = text.trim().replaceAll('-->', '->')
      return `${number}${formatTime(start, mark)} --> ${formatTime(end, mark)}\n${own}\n\n`
    })
    .join('')

function formatTime(seconds: number, mark: string): string {
  const total = Math.round(seconds * 1000)
  const [hours, minutes, whole] = [3_600_000, 60_000, 1000].map((unit) => Math.floor(total / unit))
  const pad = (value = 0, digits = 2): string => String(value).padStart(digits, '0')
  const clock = [hours, (minutes ?? 0) % 60, (whole ?? 0) % 60].map((part) => pad(part)).join(':')
  return `${clock}${mark}${pad(total % 1000, 3)}`
}
