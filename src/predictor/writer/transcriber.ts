/** Writes down speech: a spectrogram of it, window after window, and the text that a decoder makes of them. */
import type { AudioLayout } from '../../catalog/schema.ts'
import { throwInvalidInput, throwPredictorUnusable } from '../../values/input-errors.ts'
import { ENCODED } from '../bind.ts'
import type { GpuCheck } from '../gpu-check.ts'
import type { ParsedInput } from '../parse-inputs.ts'
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
import { writeTokens } from './write-tokens.ts'

type Checked = ReadonlyMap<string, ParsedInput>
type Mel = NonNullable<AudioLayout['mel']>

/** Part of speech with its start and its end in seconds, as the pipeline of transformers returns it. */
interface Chunk {
  text: string
  timestamp: [start: number, end: number]
}

/** Outputs of a prediction. */
interface Transcript {
  text: string
  /** Parts of the text; empty unless timestamps are wanted. */
  chunks: Chunk[]
  /** Code of the language, such as `en`. */
  language: string
}

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
   * Resolves with what is said, and with the device that heard it. `pause` is called before each token,
   * and rejects to end the writing.
   */
  async transcribe(checked: Checked, pause: () => Promise<void>) {
    const { bound } = this.#setup
    const sound = bound.sound ?? this.#fail('no input takes sound.')
    const { rate, mel = this.#fail('its input has no `mel`.') } = sound.layout
    const value = checked.get(sound.parameter.name)
    const samples = value?.form === 'elements' ? (value.elements.data as Float32Array) : null
    if (!samples) return throwInvalidInput(`inputs.${sound.parameter.name}`, 'must be sound.')
    const shortest = mel.frames * mel.hop
    const isShort = samples.length <= shortest
    const padded = new Float32Array(Math.max(shortest, samples.length))
    padded.set(samples)
    const heard = computeLogMel(padded, rate, mel)
    const isTimed = !isShort || readValue(checked, 'return_timestamps') === 1
    const first = await this.#encode(cutFrames(heard, 0, mel.frames))
    const language = await this.#findLanguage(checked, first.encoded)
    const prompt = this.#promptOf(checked, language, isTimed)
    const chunks: Chunk[] = []
    let text = ''
    const frames = Math.max(1, Math.floor(samples.length / mel.hop))
    for (let at = 0; at < frames;) {
      await pause()
      const { encoded } = at === 0 ? first : await this.#encode(cutFrames(heard, at, mel.frames))
      const tokens = await this.#write(encoded, prompt, isTimed, pause)
      const found = this.#divide(tokens, at, Math.min(mel.frames, frames - at), isTimed, mel)
      text += found.chunks.map((chunk) => chunk.text).join('')
      chunks.push(...found.chunks)
      at = isTimed ? found.next : frames
    }
    const wantsChunks = readValue(checked, 'return_timestamps') === 1
    const outputs: Transcript = { text, chunks: wantsChunks ? chunks : [], language }
    return { outputs: { ...outputs }, device: first.device }
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
  async #findLanguage(checked: Checked, encoded: RawTensor): Promise<string> {
    const { layout } = this.#setup
    const languages = layout.speech?.languages
    const given = readValue(checked, 'language')
    if (!languages) {
      if (given !== undefined && given !== ONLY_LANGUAGE)
        throwInvalidInput(
          'inputs.language',
          `must be "${ONLY_LANGUAGE}": the model knows no other.`,
        )
      return ONLY_LANGUAGE
    }
    if (typeof given === 'string') {
      if (Object.hasOwn(languages, given)) return given
      const known = Object.keys(languages).join(', ')
      throwInvalidInput('inputs.language', `must be one of ${known}, not ${JSON.stringify(given)}.`)
    }
    this.#session.begin(encoded)
    const scores = await this.#session.step(layout.start)
    const codes = Object.entries(languages)
    const best = findBest(Float32Array.from(codes, ([, token]) => scores[token] ?? -Infinity))
    return codes[best]?.[0] ?? ONLY_LANGUAGE
  }

  /** Returns the tokens that say what to write. */
  #promptOf(checked: Checked, language: string, isTimed: boolean): number[] {
    const { start, speech } = this.#setup.layout
    const task = readValue(checked, 'task') === 'translate' ? 'translate' : 'transcribe'
    return [
      ...start,
      ...(speech?.languages ? [speech.languages[language] ?? 0] : []),
      ...(speech?.tasks ? [speech.tasks[task]] : []),
      ...(isTimed || !speech ? [] : [speech.noTimestamps]),
    ]
  }

  async #write(
    encoded: RawTensor,
    prompt: number[],
    isTimed: boolean,
    pause: () => Promise<void>,
  ): Promise<number[]> {
    const { layout } = this.#setup
    const { end, maxTokens, speech } = layout
    const [endOfText = Infinity] = end
    const first = (speech?.noTimestamps ?? Infinity) + 1
    const times = { first, end: endOfText, maxInitial: speech?.maxInitialTimestamp }
    const room = (speech?.positions ?? Infinity) - prompt.length
    // The maximum of a model counts the tokens before the text, of which the configuration knows the first.
    const most = Math.min((maxTokens ?? Infinity) - prompt.length + layout.start.length, room)
    const tokens = await writeTokens(this.#session, encoded, {
      start: prompt,
      end,
      rules: { ...layout, ...(most < Infinity && { maxTokens: most }) },
      ...(isTimed && { adjust: (scores, own) => applyTimestampRules(scores, own, times) }),
      pause,
    })
    return tokens.filter((token) => !end.includes(token))
  }

  /** Returns the parts of a window of `count` frames, and the frame at which the next one begins. */
  #divide(tokens: number[], at: number, count: number, isTimed: boolean, { hop }: Mel) {
    const { bound, layout, tokenizer } = this.#setup
    const [endOfText = Infinity] = layout.end
    const frameSeconds = hop / (bound.sound?.layout.rate ?? 1)
    const framesPerTime = TIMESTAMP_SECONDS / frameSeconds
    const first = (layout.speech?.noTimestamps ?? Infinity) + 1
    const { segments, next } = isTimed
      ? divideSegments(tokens, Math.floor(count / framesPerTime), { first })
      : { segments: [{ start: 0, end: count / framesPerTime, tokens }], next: null }
    const toSeconds = (time: number): number =>
      Math.round((at * frameSeconds + time * TIMESTAMP_SECONDS) * 100) / 100
    const chunks = segments.map((segment): Chunk => {
      const own = segment.tokens.filter((token) => token < endOfText)
      const text = tokenizer.decode(own, { isPlain: true, tidies: false })
      return { text, timestamp: [toSeconds(segment.start), toSeconds(segment.end)] }
    })
    return { chunks, next: at + framesToNext(next, count, framesPerTime) }
  }

  #fail(why: string): never {
    return throwPredictorUnusable(this.#setup.tag, 'decoder.speech', why)
  }
}

/** Language of models that know only one. */
const ONLY_LANGUAGE = 'en'
