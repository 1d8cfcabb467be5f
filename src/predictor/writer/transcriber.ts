/** Writes down speech: a spectrogram of it, window after window, and the text that a decoder makes of them. */
import { countPromptTokens } from '../../catalog/find-entry.ts'
import type { AudioLayout } from '../../catalog/schema.ts'
import { createRandom, drawFromRow } from '../../engine/sampling/sampler.ts'
import type {
  Device,
  TranscribedSegment,
  Transcript,
  TranscribeOptions,
  TranscriptionEvent,
} from '../../types/index.ts'
import { throwInvalidInput, throwPredictorUnusable } from '../../values/input-errors.ts'
import { ENCODED } from '../bind.ts'
import type { GpuCheck } from '../gpu-check.ts'
import type { ParsedInput } from '../parse-inputs.ts'
import { assertLanguage, ONLY_LANGUAGE } from '../speech.ts'
import { fromTensor, type RawTensor } from '../tensor.ts'
import { DecoderSession } from './decoder-session.ts'
import { computeLogMel, cutFrames, type LogMel } from './log-mel.ts'
import { readValue } from './read-value.ts'
import type { WriterSetup } from './text-writer.ts'
import {
  applyTimestampRules,
  divideSegments,
  framesToNext,
  TIMESTAMP_SECONDS,
} from './timestamps.ts'
import { findBest } from './token-rules.ts'
import { alignTokens, REPLACEMENT, toWords } from './word-times.ts'
import { writeTokens } from './write-tokens.ts'

type Checked = ReadonlyMap<string, ParsedInput>
type Mel = NonNullable<AudioLayout['mel']>
type Piece = Extract<TranscriptionEvent, { type: 'text' }>
type Pause = () => Promise<void>

/** Speech as text, and the device that heard it. */
interface Heard extends Transcript {
  device: Device
}

/** How the sound of a call is written down. */
interface Hearing {
  mel: Mel
  options: TranscribeOptions
  language: string
  /** `true` if the decoder writes timestamps. */
  isTimed: boolean
  /** Returns the next token. Default: the best one. */
  choose: ((scores: Float32Array) => number) | undefined
}

/** Window of speech that has been written. */
interface Written {
  /** Tokens, without the one that ends them. */
  tokens: number[]
  /** Attention of each token to the sound, by head. */
  attention: Float32Array[][]
  quality: TranscribedSegment['quality']
}

/** Token before the text that came before the speech. */
const PREVIOUS = '<|startofprev|>'

/** Decoder of a model of speech, with the preparation of its sound. */
export class Transcriber {
  readonly #setup: WriterSetup
  readonly #session: DecoderSession
  readonly #runEncoder: GpuCheck['run']

  /** Loads the decoder. Rejects with `unavailable` if it cannot be used. */
  static async open(setup: WriterSetup, runEncoder: GpuCheck['run']): Promise<Transcriber> {
    return new Transcriber(setup, await DecoderSession.openFor(setup), runEncoder)
  }

  private constructor(setup: WriterSetup, session: DecoderSession, runEncoder: GpuCheck['run']) {
    this.#setup = setup
    this.#session = session
    this.#runEncoder = runEncoder
  }

  /**
   * Resolves with the outputs of a prediction, and with the device that heard it. `pause` is called before
   * each token, and rejects to end the writing. `report` is called with a function that returns the text so far.
   */
  async predict(checked: Checked, pause: Pause, report?: (toText: () => string) => void) {
    const language = readValue(checked, 'language')
    const hasSegments = readValue(checked, 'return_timestamps') === 1
    const options: TranscribeOptions = {
      task: readValue(checked, 'task') === 'translate' ? 'translate' : 'transcribe',
      ...(typeof language === 'string' && { language }),
      hasSegments,
    }
    const hearing = this.transcribe(checked, options, pause)
    let result = await hearing.next()
    for (let written = ''; !result.done; result = await hearing.next()) {
      written += result.value.text
      const soFar = written
      report?.(() => soFar)
    }
    const { text, segments, language: heard, device } = result.value
    const chunks = segments.map(({ text: own, start, end }) => ({
      text: own,
      timestamp: [start, end] as const,
    }))
    return { outputs: { text, chunks: hasSegments ? chunks : [], language: heard }, device }
  }

  /** Yields pieces of the text as it is written, and returns all of it. */
  async *transcribe(
    checked: Checked,
    options: TranscribeOptions,
    pause: Pause,
  ): AsyncGenerator<Piece, Heard> {
    const { bound } = this.#setup
    const sound = bound.sound ?? this.#fail('no input takes sound.')
    const { rate, mel = this.#fail('its input has no `mel`.') } = sound.layout
    const value = checked.get(sound.parameter.name)
    const samples = value?.form === 'elements' ? (value.elements.data as Float32Array) : null
    if (!samples) return throwInvalidInput(`inputs.${sound.parameter.name}`, 'must be sound.')
    const shortest = mel.frames * mel.hop
    const padded = new Float32Array(Math.max(shortest, samples.length))
    padded.set(samples)
    const heard = computeLogMel(padded, rate, mel)
    const { hasSegments, hasWords = false, temperature = 0, seed } = options
    const isTimed = hasSegments || hasWords || samples.length > shortest
    const frames = Math.max(1, Math.floor(samples.length / mel.hop))
    const first = await this.#encode(cutFrames(heard, 0, mel.frames))
    const language = await this.#findLanguage(options.language, first.encoded)
    const random = createRandom(seed)
    const range = { temperature, topK: 0, topP: 1, minP: 0 }
    const choose =
      temperature > 0 ? (row: Float32Array) => drawFromRow(row, range, random()) : undefined
    const hearing = { mel, options, language, isTimed, choose }
    const duration = samples.length / rate
    const all: Heard = {
      text: '',
      language,
      duration,
      segments: [],
      words: [],
      device: first.device,
    }
    for (let at = 0; at < frames;) {
      await pause()
      const { encoded } = at === 0 ? first : await this.#encode(cutFrames(heard, at, mel.frames))
      const count = Math.min(mel.frames, frames - at)
      const written = yield* this.#write(encoded, hearing, at, pause)
      const found = this.#divide(written.tokens, at, count, hearing)
      all.text += textOf(found.segments)
      all.segments.push(
        ...found.segments.map((own) => ({ ...own, temperature, quality: written.quality })),
      )
      if (hasWords) all.words.push(...this.#timeWords(written, found.segments, count, hearing))
      at = isTimed ? found.next : frames
    }
    return all
  }

  /** Frees the decoder. */
  release(): Promise<void> {
    return this.#session.release()
  }

  async #encode({ data, bands, frames }: LogMel) {
    const { runtime, bound } = this.#setup
    const tensor = new runtime.ort.Tensor('float32', data, [1, bands, frames])
    const name = bound.sound?.tensor ?? ''
    const { results, device } = await this.#runEncoder({ [name]: tensor }, [ENCODED])
    const encoded = results[ENCODED] ?? this.#fail(`the encoder returned no ${ENCODED}.`)
    return { encoded: fromTensor(encoded), device }
  }

  /** Resolves with the language that is given, or else with the one that is heard. */
  async #findLanguage(given: string | undefined, encoded: RawTensor): Promise<string> {
    const { layout } = this.#setup
    if (given !== undefined) assertLanguage(layout.speech, given, 'inputs.language')
    const languages = layout.speech?.languages
    if (!languages || given !== undefined) return given ?? ONLY_LANGUAGE
    this.#session.begin(encoded)
    const scores = (await this.#session.step(layout.start)).rows.at(-1)
    const codes = Object.entries(languages)
    const best = findBest(Float32Array.from(codes, ([, token]) => scores?.[token] ?? -Infinity))
    return codes[best]?.[0] ?? ONLY_LANGUAGE
  }

  /** Returns the tokens that say what to write. */
  #promptOf({ language, isTimed, options: { task } }: Hearing): number[] {
    const { start, speech } = this.#setup.layout
    return [
      ...start,
      ...(speech?.languages ? [speech.languages[language] ?? 0] : []),
      ...(speech?.tasks ? [speech.tasks[task]] : []),
      ...(isTimed || !speech ? [] : [speech.noTimestamps]),
    ]
  }

  /** Returns the tokens of a text that came before the speech. Only the last ones fit. */
  #previousOf(prompt: string | undefined): number[] {
    const { tokenizer, layout } = this.#setup
    const text = prompt?.trim()
    if (!text) return []
    const refuse = (why: string) => throwInvalidInput('inputs.prompt', why)
    const before =
      tokenizer.idOf(PREVIOUS) ?? refuse(`the model takes none: it has no ${PREVIOUS}.`)
    const { ids } = tokenizer.tokenize(` ${text}`, { isPlain: true })
    const special = ids.find((id) => id >= (layout.end[0] ?? Infinity))
    if (special !== undefined)
      refuse(`has the special token ${tokenizer.decode([special])}. Leave it out.`)
    return [before, ...ids.slice(-countPromptTokens(layout.speech))]
  }

  /** Yields the text of a window in pieces, and returns its tokens. */
  async *#write(
    encoded: RawTensor,
    hearing: Hearing,
    at: number,
    pause: Pause,
  ): AsyncGenerator<Piece, Written> {
    const { isTimed, options, choose } = hearing
    const { layout } = this.#setup
    const { end, maxTokens, speech } = layout
    const [endOfText = Infinity] = end
    const first = (speech?.noTimestamps ?? Infinity) + 1
    const times = { first, end: endOfText, maxInitial: speech?.maxInitialTimestamp }
    const previous = at === 0 ? this.#previousOf(options.prompt) : []
    const prompt = [...previous, ...this.#promptOf(hearing)]
    const room = (speech?.positions ?? Infinity) - prompt.length
    // The maximum of a model counts the tokens before the text, of which the configuration knows the first.
    const most = Math.min((maxTokens ?? Infinity) - prompt.length + layout.start.length, room)
    const writing = writeTokens(this.#session, encoded, {
      start: prompt,
      end,
      rules: { ...layout, ...(most < Infinity && { maxTokens: most }) },
      ...(isTimed && { adjust: (scores, own) => applyTimestampRules(scores, own, times) }),
      choose,
      heads: options.hasWords ? speech?.alignment : undefined,
      pause,
    })
    const tokens: number[] = []
    const attention: Float32Array[][] = []
    const started = previous.length + layout.start.length
    let before: Float32Array | undefined
    let logprobs = 0
    let sent = 0
    for await (const { token, scores, step } of writing) {
      // A step attends with the token before the one that it chooses.
      if (tokens.length > 0) attention.push(step.attention)
      else if (step.rows.length === prompt.length) before = step.rows[started - 1]?.slice()
      if (options.hasSegments) logprobs += logprobOf(scores, token)
      if (end.includes(token)) break
      tokens.push(token)
      const ready = this.#readyOf(tokens, at, hearing)
      if (ready.length > sent) yield { type: 'text', text: ready.slice(sent) }
      sent = Math.max(sent, ready.length)
    }
    const text = textOf(this.#divide(tokens, at, hearing.mel.frames, hearing).segments)
    if (text.length > sent) yield { type: 'text', text: text.slice(sent) }
    if (!options.hasSegments) return { tokens, attention, quality: null }
    before ??= await this.#scoresAfter(encoded, prompt.slice(0, started))
    const quality = {
      avgLogprob: logprobs / (tokens.length + 1),
      compressionRatio: await computeCompression(text),
      // The token before the one that there are no timestamps says that nobody speaks.
      noSpeechProb: Math.exp(logprobOf(before, first - 2)),
    }
    return { tokens, attention, quality }
  }

  async #scoresAfter(encoded: RawTensor, tokens: readonly number[]): Promise<Float32Array> {
    this.#session.begin(encoded)
    return (await this.#session.step(tokens)).rows.at(-1) ?? new Float32Array()
  }

  /** Returns the beginning of the text of a window that further tokens do not change. */
  #readyOf(tokens: readonly number[], at: number, hearing: Hearing): string {
    const first = (this.#setup.layout.speech?.noTimestamps ?? Infinity) + 1
    if (!hearing.isTimed) {
      const text = this.#decode(tokens)
      return text.endsWith(REPLACEMENT) ? '' : text
    }
    // A segment ends with the timestamp before that of the next one.
    const isClosed = tokens.length > 2 && tokens.slice(-2).every((token) => token >= first)
    return isClosed ? textOf(this.#divide(tokens, at, hearing.mel.frames, hearing).segments) : ''
  }

  #decode(tokens: readonly number[]): string {
    const { layout, tokenizer } = this.#setup
    const own = tokens.filter((token) => token < (layout.end[0] ?? Infinity))
    // The tokenizer decodes no empty list.
    return own.length > 0 ? tokenizer.decode(own, { isPlain: true, tidies: false }) : ''
  }

  /** Returns the parts of a window of `count` frames, and the frame at which the next one begins. */
  #divide(tokens: readonly number[], at: number, count: number, { isTimed, mel }: Hearing) {
    const { bound, layout } = this.#setup
    const frameSeconds = mel.hop / (bound.sound?.layout.rate ?? 1)
    const framesPerTime = TIMESTAMP_SECONDS / frameSeconds
    const first = (layout.speech?.noTimestamps ?? Infinity) + 1
    const { segments, next } = isTimed
      ? divideSegments(tokens, Math.floor(count / framesPerTime), { first })
      : { segments: [{ start: 0, end: count / framesPerTime, tokens }], next: null }
    const toSeconds = (time: number): number =>
      roundTime(at * frameSeconds + time * TIMESTAMP_SECONDS)
    const parts = segments.map(({ start, end, tokens: own }) => ({
      seek: at,
      start: toSeconds(start),
      end: toSeconds(end),
      text: this.#decode(own),
      tokens: own,
    }))
    return { segments: parts, next: at + framesToNext(next, count, framesPerTime) }
  }

  /** Returns the words of a window of `count` frames, of the tokens of these segments. */
  #timeWords(
    { attention }: Written,
    segments: readonly Pick<TranscribedSegment, 'seek' | 'tokens'>[],
    count: number,
    { mel, language, options }: Hearing,
  ) {
    const { bound, layout } = this.#setup
    const frameSeconds = mel.hop / (bound.sound?.layout.rate ?? 1)
    const columns = Math.floor((count * frameSeconds) / TIMESTAMP_SECONDS)
    // The attention of a token is where the next one is said.
    const starts = [0, ...alignTokens(attention, columns)]
    const seconds = (index: number, seek: number): number =>
      roundTime(seek * frameSeconds + (starts[index] ?? starts.at(-1) ?? 0) * TIMESTAMP_SECONDS)
    let index = 0
    return segments.flatMap(({ seek, tokens }) => {
      const timed = tokens.flatMap((token) => {
        const at = index++
        const isText = token < (layout.end[0] ?? Infinity)
        return isText ? [{ token, start: seconds(at, seek), end: seconds(at + 1, seek) }] : []
      })
      const spoken = options.task === 'translate' ? ONLY_LANGUAGE : language
      return toWords(timed, spoken, (own) => this.#decode(own))
    })
  }

  #fail(why: string): never {
    return throwPredictorUnusable(this.#setup.tag, 'decoder.speech', why)
  }
}

const textOf = (segments: readonly Pick<TranscribedSegment, 'text'>[]): string =>
  segments.map(({ text }) => text).join('')

const roundTime = (seconds: number): number => Math.round(seconds * 100) / 100

/** Returns the logarithm of the probability of a token. */
function logprobOf(scores: Float32Array, token: number): number {
  const most = scores.reduce((highest, score) => Math.max(highest, score), -Infinity)
  const sum = scores.reduce((total, score) => total + Math.exp(score - most), 0)
  return (scores[token] ?? -Infinity) - most - Math.log(sum)
}

/** Resolves with how often the text fits into its compressed form. Repetitions raise it. */
async function computeCompression(text: string): Promise<number> {
  const plain = new Blob([text])
  const compressed = plain.stream().pipeThrough(new CompressionStream('deflate'))
  return plain.size / (await new Response(compressed).arrayBuffer()).byteLength
}
