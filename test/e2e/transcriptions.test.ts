/** Speech from a model of `inorigin add` to `server.predict` and `/v1/audio`, in a browser. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Tokenizer } from '@huggingface/tokenizers'
import type OpenAI from 'openai'
import type { Browser, Page } from 'playwright'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Server, TraceEvent } from '../../src/index.ts'
import { makePatient, openBrowser } from '../support/browser.ts'
import { CliApp, ROOT } from '../support/cli-app.ts'
import { decoderGraph, SPEECH_ENCODER, tokensOf } from '../support/encoder-decoder.ts'
import { onnxFile } from '../support/onnx.ts'
import { fetchIn } from '../support/requests.ts'
import type * as Sdks from '../support/sdks-entry.ts'
import { bundleSdks } from '../support/sdks.ts'
import { flacFile, wavFile } from '../support/sounds.ts'
import { serveStatic, type StaticServer } from '../support/static.ts'

const PAGE = `<!doctype html><title>App</title><link rel="icon" href="data:,">
<script type="module">
  import { serve } from './inorigin/index.js'
  globalThis.server = await serve({ catalog: '/inorigin/catalog.json', device: 'wasm' })
</script>`

const TAG = '@me/speech'
const TIMED_TAG = '@me/timed'
const ENGLISH_TAG = '@me/english'
const RATE = 16_000

/** Tokens of the model. Those of timestamps follow the one that there are none. */
const START = 5
const PREVIOUS = 76
const END = 70
const ENGLISH = 6
const GERMAN = 40
const TRANSCRIBE = 8
const TRANSLATE = 9
const NO_TIMESTAMPS = 80

const guide = JSON.parse(readFileSync(join(ROOT, 'demo/models/guide/tokenizer.json'), 'utf8')) as {
  added_tokens: object[]
}
const previous = { id: PREVIOUS, content: '<|startofprev|>', special: true }
const TOKENIZER = { ...guide, added_tokens: [...guide.added_tokens, previous] }
const tokenizer = new Tokenizer(TOKENIZER, {})

let app: CliApp
let site: StaticServer
let browser: Browser
let page: Page

/** Writes a folder of a model of speech, which hears a second at once, and adds it. */
function put(tag: string, generation: object, attends = false): void {
  const name = tag.replace('@me/', '')
  const architectures = ['WhisperForConditionalGeneration']
  const config = { architectures, is_encoder_decoder: true, max_target_positions: 24 }
  const own = {
    decoder_start_token_id: START,
    eos_token_id: END,
    max_length: 12,
    no_timestamps_token_id: NO_TIMESTAMPS,
    ...generation,
  }
  const preprocessor = {
    feature_extractor_type: 'WhisperFeatureExtractor',
    feature_size: 4,
    chunk_length: 1,
  }
  const files = {
    'config.json': config,
    'generation_config.json': own,
    'preprocessor_config.json': preprocessor,
    'tokenizer.json': TOKENIZER,
  }
  for (const [file, content] of Object.entries(files))
    app.put(`${name}/${file}`, JSON.stringify(content))
  app.put(`${name}/encoder_model.onnx`, onnxFile(SPEECH_ENCODER))
  const decoder = decoderGraph('merged', { isMasked: false, attends })
  app.put(`${name}/decoder_model_merged.onnx`, onnxFile(decoder))
  const added = app.inorigin('add', name, '--tag', tag)
  expect(added).toMatchObject({ code: 0, err: '' })
  expect(added.out).toContain('  audio: new Float32Array(16000),')
}

beforeAll(async () => {
  app = new CliApp()
  app.init('--no-guide')
  const languages = {
    lang_to_id: { '<|en|>': ENGLISH, '<|de|>': GERMAN },
    task_to_id: { transcribe: TRANSCRIBE, translate: TRANSLATE },
  }
  put(TAG, languages)
  put(TIMED_TAG, { ...languages, alignment_heads: [[0, 0]] }, true)
  put(ENGLISH_TAG, {})
  site = await serveStatic({ folders: { '/': app.path('public') }, pages: { '/app.html': PAGE } })
  browser = await openBrowser()
  page = makePatient(await browser.newPage())
  await page.goto(`${site.url}/app.html`)
  await page.waitForFunction(() => 'server' in globalThis)
  await page.addScriptTag({ content: await bundleSdks() })
})

afterAll(async () => {
  await browser?.close()
  await site?.close()
  app?.remove()
})

const tone = (seconds: number): number[] =>
  Array.from({ length: seconds * RATE }, (_, at) => Math.sin(at / 9))

const toSamples = (numbers: readonly number[]): Int16Array =>
  Int16Array.from(numbers, (number) => Math.round(number * 32_767))

/** Text of a window without timestamps. The loudest level of a tone is 2, that of silence -1. */
function written(language: number, task: number, loudest = 2, before: readonly number[] = []) {
  const start = [...before, START, language, task, NO_TIMESTAMPS]
  const tokens = tokensOf(2 * loudest, { start, end: END, count: 12 - 4 - before.length })
  return tokenizer.decode(
    tokens.filter((token) => token < END),
    { clean_up_tokenization_spaces: false },
  )
}

const predict = (inputs: object): Promise<Record<string, unknown>> =>
  page.evaluate(
    async ([tag, given]) => {
      const { server } = globalThis as unknown as { server: Server }
      return (await server.predict(tag, { ...given, audio: Float32Array.from(given.audio) }))
        .outputs
    },
    [TAG, inputs as { audio: number[] }] as const,
  )

test(
  'A model of speech writes down what it hears, in the language that it hears',
  { tags: ['everyday'] },
  async () => {
    expect(await predict({ audio: tone(1) })).toEqual({
      text: written(ENGLISH, TRANSCRIBE),
      chunks: [],
      language: 'en',
    })
    const inputs = { audio: Array<number>(9000).fill(0), language: 'de', task: 'translate' }
    expect(await predict(inputs)).toMatchObject({ text: written(GERMAN, TRANSLATE, -1) })

    const timed = await predict({ audio: tone(2.5), return_timestamps: true })
    const chunks = timed['chunks'] as { text: string; timestamp: [number, number] }[]
    expect(timed['text']).toBe(chunks.map(({ text }) => text).join(''))
    const times = chunks.flatMap(({ timestamp }) => timestamp)
    expect(times).toEqual(times.toSorted((one, other) => one - other))
    expect(times.at(-1)).toBeGreaterThan(2)
    await expect(predict({ audio: tone(1), language: 'xx' })).rejects.toThrow(
      'inputs.language: must be one of en, de, not "xx".',
    )
  },
)

/** What `/v1/audio` answers in JSON, as far as tests read it. */
interface Answer {
  text: string
  segments: OpenAI.Audio.TranscriptionSegment[]
  words: OpenAI.Audio.TranscriptionWord[]
}

/** Calls OpenAI's client in the page with a file. Resolves with the answer, or with the error. */
const ask = <Result = Answer>(
  file: Uint8Array,
  fields: object = {},
  endpoint: 'transcriptions' | 'translations' = 'transcriptions',
): Promise<Result> =>
  page.evaluate(
    async ([base64, given, path]) => {
      const { OpenAI: Client } = (globalThis as unknown as { sdks: typeof Sdks }).sdks
      const baseURL = `${location.origin}/v1`
      const client = new Client({
        baseURL,
        apiKey: 'k',
        dangerouslyAllowBrowser: true,
        maxRetries: 0,
      })
      const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))
      const sound = new File([bytes], 'speech.wav')
      try {
        const answer: unknown = await client.audio[path].create({ file: sound, ...given } as never)
        if (!(given as { stream?: boolean }).stream) return answer
        const events: unknown[] = []
        for await (const event of answer as AsyncIterable<unknown>) events.push(event)
        return events
      } catch (thrown) {
        const { status, param, message } = thrown as InstanceType<typeof Client.APIError>
        return { status, param, message }
      }
    },
    [Buffer.from(file).toString('base64'), { model: TAG, ...fields }, endpoint] as const,
  ) as Promise<Result>

test(
  "OpenAI's client gets what a file says, in each format, and as it is written",
  { tags: ['everyday'] },
  async () => {
    const second = wavFile(toSamples(tone(1)), RATE)
    const text = written(ENGLISH, TRANSCRIBE).trim()
    expect(await ask(second)).toEqual({ text, usage: { type: 'duration', seconds: 1 } })
    const flac = flacFile(toSamples(tone(1)), RATE)
    expect(await ask(flac)).toMatchObject({ text })
    const english = await ask(second, { language: 'de' }, 'translations')
    expect(english.text).toBe(written(GERMAN, TRANSLATE).trim())
    const prompted = await ask(second, { prompt: '12' })
    const before = [PREVIOUS, ...tokenizer.encode(' 12', { add_special_tokens: false }).ids]
    expect(prompted.text).toBe(written(ENGLISH, TRANSCRIBE, 2, before).trim())

    const long = wavFile(toSamples(tone(2.5)), RATE)
    const verbose = await ask(long, { response_format: 'verbose_json' })
    expect(verbose).toMatchObject({ task: 'transcribe', language: 'english', duration: 2.5 })
    const { segments } = verbose
    expect(segments.map(({ id }) => id)).toEqual([...segments.keys()])
    expect(segments[0]).toMatchObject({ seek: 0, temperature: 0 })
    for (const { avg_logprob, compression_ratio, no_speech_prob, tokens } of segments) {
      expect(avg_logprob).toBeLessThan(0)
      expect(compression_ratio).toBeGreaterThan(0)
      expect(no_speech_prob).toBeGreaterThanOrEqual(0)
      expect(tokens.length).toBeGreaterThan(0)
    }
    const subtitles = await ask<string>(long, { response_format: 'srt' })
    expect(subtitles.match(/-->/g)).toHaveLength(segments.length)

    const events = await ask<{ delta: string }[]>(second, { stream: true })
    const done = { type: 'transcript.text.done', text }
    expect(events.at(-1)).toEqual(done)
    const deltas = events.slice(0, -1).map(({ delta }) => delta)
    expect(deltas.join('').trim()).toBe(text)
    expect(deltas.length).toBeGreaterThan(2)

    const listed = JSON.parse((await fetchIn(page, `/v1/models/${TAG}`)).text)
    expect(listed).toMatchObject({
      capabilities: { transcription: { supported: true, translates: true } },
      max_tokens: null,
    })
  },
)

test('Speech is chosen at random by a temperature, and the same again by a seed', async () => {
  const sound = wavFile(toSamples(tone(1)), RATE)
  const [one, same, other] = await Promise.all(
    [1, 1, 2].map((seed) => ask(sound, { temperature: 1, seed })),
  )
  expect(one).toEqual(same)
  expect(other?.text).not.toBe(one?.text)
})

test('Words have times where the decoder returns its attention', async () => {
  const verbose = { response_format: 'verbose_json', timestamp_granularities: ['word'] }
  const sound = wavFile(toSamples(tone(1)), RATE)
  const { words, text } = await ask(sound, { ...verbose, model: TIMED_TAG })
  expect(words.map(({ word }) => word).join('')).toBe(text.replaceAll(/\s/g, ''))
  for (const { start, end } of words) expect(end).toBeGreaterThanOrEqual(start)
  expect(await ask(sound, verbose)).toMatchObject({
    status: 400,
    param: 'timestamp_granularities',
    message: expect.stringContaining('its decoder must return `cross_attentions.N`'),
  })
})

test.each<[string, () => Uint8Array, object, 'transcriptions' | 'translations', object]>([
  [
    'a file that no browser decodes',
    () => Buffer.from('no sound'),
    {},
    'transcriptions',
    { status: 400, param: 'file', message: expect.stringContaining('Send wav, mp3, m4a') },
  ],
  [
    'a WAV file without samples',
    () => wavFile(new Int16Array(0), RATE),
    {},
    'transcriptions',
    { status: 400, param: 'file', message: expect.stringContaining('has no samples') },
  ],
  [
    'an unknown language',
    () => wavFile(new Int16Array(100), RATE),
    { language: 'xx' },
    'transcriptions',
    { status: 400, param: 'language', message: expect.stringContaining('one of en, de') },
  ],
  [
    'an unknown model',
    () => wavFile(new Int16Array(100), RATE),
    { model: '@me/sleech' },
    'transcriptions',
    { status: 404, param: 'model', message: expect.stringContaining(TAG) },
  ],
  [
    'another language than English, of a model that knows only that',
    () => wavFile(new Int16Array(100), RATE),
    { model: ENGLISH_TAG, language: 'de' },
    'transcriptions',
    {
      status: 400,
      param: 'language',
      message: expect.stringContaining('the model knows no other'),
    },
  ],
  [
    'a translation by such a model',
    () => wavFile(new Int16Array(100), RATE),
    { model: ENGLISH_TAG },
    'translations',
    { status: 400, param: 'model', message: expect.stringContaining('does not translate') },
  ],
])('%s is refused', async (_name, file, fields, endpoint, error) => {
  expect(await ask(file(), fields, endpoint)).toMatchObject(error)
})

test('A file of 30 MB of zeros is refused', async () => {
  const error = await page.evaluate(async (model) => {
    const form = new FormData()
    form.append('file', new File([new Uint8Array(30e6)], 'zeros.mp3'))
    form.append('model', model)
    const response = await fetch('/v1/audio/transcriptions', { method: 'POST', body: form })
    return ((await response.json()) as { error: { param: string; message: string } }).error
  }, TAG)
  expect(error).toMatchObject({ param: 'file', message: expect.stringContaining('is larger than') })
})

test('A model that knows only English says so', async () => {
  const sound = wavFile(toSamples(tone(1)), RATE)
  const asked = { model: ENGLISH_TAG, response_format: 'verbose_json' }
  expect(await ask(sound, asked)).toMatchObject({ language: 'english' })
})

test('A reader that leaves ends the work', async () => {
  const failures = await page.evaluate(
    async ([base64, model]) => {
      const { server } = globalThis as unknown as { server: Server }
      const ending = new AbortController()
      const ended = new Promise<TraceEvent>((resolve) => {
        void (async () => {
          for await (const event of server.trace({ signal: ending.signal }))
            if (event.type === 'failure' || event.type === 'response') resolve(event)
        })().catch(() => undefined)
      })
      const form = new FormData()
      const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))
      form.append('file', new File([bytes], 'long.wav'))
      form.append('model', model)
      form.append('stream', 'true')
      const leaving = new AbortController()
      const options = { method: 'POST', body: form, signal: leaving.signal }
      const response = await fetch('/v1/audio/transcriptions', options)
      await response.body?.getReader().read()
      leaving.abort()
      const last = await ended
      ending.abort()
      return last
    },
    [Buffer.from(wavFile(toSamples(tone(20)), RATE)).toString('base64'), TAG] as const,
  )
  expect(failures).toMatchObject({
    type: 'failure',
    operation: 'transcribe',
    error: { kind: 'aborted' },
  })
  const next = await ask(wavFile(toSamples(tone(1)), RATE))
  expect(next.text).toBe(written(ENGLISH, TRANSCRIBE).trim())
})
