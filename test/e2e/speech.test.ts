/** Voices from `inorigin add` to sound of `/v1/audio/speech`, in a browser. */
import type { Browser, Page } from 'playwright'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Server } from '../../src/index.ts'
import { makePatient, openBrowser } from '../support/browser.ts'
import { CliApp } from '../support/cli-app.ts'
import { onnxFile } from '../support/onnx.ts'
import { fetchIn } from '../support/requests.ts'
import { bundleSdks } from '../support/sdks.ts'
import type * as Sdks from '../support/sdks-entry.ts'
import { serveStatic, type StaticServer } from '../support/static.ts'
import {
  LETTER_FILES,
  LETTER_VOICE,
  LETTERS,
  PHONEME_VOICE,
  PIPER_CONFIG,
  toPiperIds,
  TOKEN_LEVEL,
} from '../support/voices.ts'

const PAGE = `<!doctype html><title>App</title><link rel="icon" href="data:,">
<script type="module">
  import { serve } from './inorigin/index.js'
  globalThis.server = await serve({ catalog: '/inorigin/catalog.json', device: 'wasm' })
</script>`

const RATE = 16_000
const HEADER_BYTES = 44

let app: CliApp
let site: StaticServer
let browser: Browser
let page: Page

beforeAll(async () => {
  app = new CliApp()
  app.init('--no-guide')
  const { vocabulary, settings } = LETTER_FILES
  const config = { architectures: ['VitsModel'], sampling_rate: RATE }
  app.put('letters/config.json', JSON.stringify(config))
  app.put('letters/vocab.json', JSON.stringify(vocabulary))
  app.put('letters/tokenizer_config.json', JSON.stringify(settings))
  app.put('letters/model.onnx', onnxFile(LETTER_VOICE))
  app.put('piper/voice.onnx.json', JSON.stringify(PIPER_CONFIG))
  app.put('piper/lexicon.txt', 'HELLO  HH AH0 L OW1\nbird\t/bɜːd/\n')
  app.put('piper/voice.onnx', onnxFile(PHONEME_VOICE))
  for (const name of ['letters', 'piper']) addVoice(name)
  site = await serveStatic({ folders: { '/': app.path('public') }, pages: { '/app.html': PAGE } })
  browser = await openBrowser()
  page = makePatient(await browser.newPage())
  await page.goto(`${site.url}/app.html`)
  await page.addScriptTag({ content: await bundleSdks() })
  await page.waitForFunction(() => 'server' in globalThis)
})

afterAll(async () => {
  await browser?.close()
  await site?.close()
  app?.remove()
})

function addVoice(name: string): void {
  expect(app.inorigin('add', name, '--tag', `@me/${name}`)).toMatchObject({ code: 0, err: '' })
}

interface InPage {
  sdks: typeof Sdks
  server: Server
}

type Fields = Parameters<InstanceType<typeof Sdks.OpenAI>['audio']['speech']['create']>[0]

/** Resolves with the type and the bytes of speech as OpenAI's client gets it, and its decoded length. */
const speak = (fields: Fields) =>
  page.evaluate(async (given) => {
    const { sdks } = globalThis as unknown as InPage
    const baseURL = `${location.origin}/v1`
    const openai = new sdks.OpenAI({ apiKey: 'k', baseURL, dangerouslyAllowBrowser: true })
    const response = await openai.audio.speech.create(given)
    const bytes = await response.arrayBuffer()
    const type = response.headers.get('content-type')
    const copy = Array.from(new Uint8Array(bytes))
    if (type !== 'audio/wav') return { type, bytes: copy, length: null, level: null }
    // A browser reads a file whose header has no length.
    const sound = await new OfflineAudioContext(1, 1, 16_000).decodeAudioData(bytes)
    const [, level] = sound.getChannelData(0)
    return { type, bytes: copy, length: sound.length, level }
  }, fields)

const toSamples = (bytes: readonly number[]): number[] =>
  Array.from(new Int16Array(Uint8Array.from(bytes).buffer))

/** Returns the samples of tokens. Each of them is one. */
const samplesOf = (levels: readonly number[]): number[] =>
  levels.map((level) => Math.round(Math.fround(level * Math.fround(TOKEN_LEVEL)) * 32_767))

/** Returns the tokens of a sentence, with blanks between its letters. */
const toLetterIds = (text: string): number[] => [
  ...Array.from(text).flatMap((letter) => [0, LETTERS.indexOf(letter)]),
  0,
]

test(
  "A voice of letters speaks each sentence to OpenAI's client, as a sound that browsers decode",
  { tags: ['everyday'] },
  async () => {
    const input = '“A cat” – or two? Dogs!'
    const { type, bytes, length, level } = await speak({
      model: '@me/letters',
      input,
      voice: 'default',
    })
    // Python leaves out the dash, but keeps the spaces beside it.
    const samples = samplesOf([...toLetterIds('a cat  or two'), ...toLetterIds('dogs')])
    expect(type).toBe('audio/wav')
    expect(toSamples(bytes.slice(HEADER_BYTES))).toEqual(samples)
    expect(length).toBe(samples.length)
    expect(level).toBeCloseTo((samples[1] ?? 0) / 32_768, 4)
  },
)

test(
  'A voice of Piper reads its dictionary, and has speakers and a speed',
  { tags: ['everyday'] },
  async () => {
    const ids = toPiperIds('həlˈoʊ, bɜːd!')
    const spoken = (scale: number, speaker: number) =>
      samplesOf(ids.map((id) => id * scale + ids.length + speaker))
    const fields = { model: '@me/piper', input: 'Hello, bird!', response_format: 'pcm' } as const
    const plain = await speak({ ...fields, voice: 'default' })
    expect(plain.type).toBe('audio/pcm')
    expect(toSamples(plain.bytes)).toEqual(spoken(2, 0).map((one) => Math.min(one, 32_767)))
    const other = await speak({ ...fields, voice: 'ben', speed: 4 })
    expect(toSamples(other.bytes)).toEqual(spoken(0.5, 1))

    const listed = await fetchIn(page, '/v1/models/@me/piper')
    expect(JSON.parse(listed.text)).toMatchObject({
      max_input_tokens: 4_096,
      capabilities: {
        speech: { supported: true, voices: ['default', 'anna', 'ben'], sample_rate: 22_050 },
      },
    })
  },
)

test('Events have a sound for each sentence', { tags: ['everyday'] }, async () => {
  const body = { model: '@me/letters', input: 'One. Two!', stream_format: 'sse' }
  const { text } = await fetchIn(page, '/v1/audio/speech', { ...body, response_format: 'pcm' })
  const events = text.split('\n').filter((line) => line.startsWith('data: '))
  const parsed = events.map((line) => JSON.parse(line.slice(6)) as { type: string; audio?: string })
  expect(parsed.map(({ type }) => type)).toEqual([
    'speech.audio.delta',
    'speech.audio.delta',
    'speech.audio.done',
  ])
  expect(toSamples([...Buffer.from(parsed[1]?.audio ?? '', 'base64')])).toEqual(
    samplesOf(toLetterIds('two')),
  )
})

test('A voice is a predictor, too', { tags: ['everyday'] }, async () => {
  const audio = await page.evaluate(async () => {
    const { server } = globalThis as unknown as InPage
    const { outputs } = await server.predict('@me/letters', { text: 'Cats' })
    return Array.from((outputs['audio'] as { data: Float32Array }).data)
  })
  expect(audio).toEqual(toLetterIds('cats').map((id) => expect.closeTo(id * TOKEN_LEVEL, 5)))
})

test.each<[string, object, string, RegExp]>([
  ['@me/letters', { input: 'Room 5' }, 'input', /^input: the voice cannot say "5"\. Write numbers/],
  ['@me/letters', { speed: 2 }, 'speed', /^speed must be 1, not 2: the speed of @me\/letters is/],
  ['@me/piper', { input: 'Hello, cat.' }, 'input', /the dictionary of the voice lacks "cat"\. Add/],
  [
    '@me/piper',
    { voice: 'alloy' },
    'voice',
    /unknown to @me\/piper\. Its voices are default, anna/,
  ],
  ['@me/none', {}, 'model', /^Unknown model "@me\/none"\. Available: @me\/.*, @me\/.*\.$/],
])('%s refuses %j', { tags: ['everyday'] }, async (model, fields, param, why) => {
  const body = { model, input: 'Hello', voice: 'default', ...fields }
  const { error } = JSON.parse((await fetchIn(page, '/v1/audio/speech', body)).text)
  expect(error).toMatchObject({ param, message: expect.stringMatching(why) })
})

test('A voice does not chat', { tags: ['everyday'] }, async () => {
  const body = { model: '@me/piper', messages: [{ role: 'user', content: 'Hello' }] }
  const { error } = JSON.parse((await fetchIn(page, '/v1/chat/completions', body)).text)
  expect(error).toMatchObject({
    code: 'unsupported_model',
    message: '@me/piper speaks texts and does not chat; use /v1/audio/speech.',
  })
})
