/** `POST /v1/audio/transcriptions` and `/translations`: what OpenAI's client sends, and what it gets. */
import OpenAI from 'openai'
import { describe, expect, it, test } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import type {
  Transcript,
  TranscriptionEvent,
  TranscriptionRequest,
} from '../../../src/types/index.ts'
import { handle } from '../../../src/wire/handler.ts'
import { toLanguageName } from '../../../src/wire/transcriptions.ts'
import { collect, errorOf, fetchOf, KEY, ORIGIN, scriptedHost } from './scripted-host.ts'

const model = '@acme/hear'
const PATH = '/v1/audio/transcriptions'
const MIB = 2 ** 20

const TRANSCRIPT: Transcript = {
  text: ' Good day. --> Bye.',
  language: 'de',
  duration: 3661.5,
  segments: [
    {
      seek: 0,
      start: 0,
      end: 1.26,
      text: ' Good day.',
      tokens: [100, 7, 8, 163],
      temperature: 0.5,
      quality: { avgLogprob: -0.25, compressionRatio: 0.9, noSpeechProb: 0.01 },
    },
    {
      seek: 3000,
      start: 3599.999,
      end: 3661.5,
      text: ' --> Bye.',
      tokens: [9],
      temperature: 0.5,
      quality: { avgLogprob: -0.5, compressionRatio: 0.8, noSpeechProb: 0.02 },
    },
  ],
  words: [{ word: 'Good', start: 0.1, end: 0.4 }],
}

const EVENTS: TranscriptionEvent[] = [
  { type: 'heartbeat' },
  { type: 'text', text: ' ' },
  { type: 'text', text: ' Good day.' },
  { type: 'text', text: ' --> Bye.' },
  { type: 'finish', transcript: TRANSCRIPT },
]

/** A host that hears these events, an error of which it throws. */
function hearingHost(events: readonly (TranscriptionEvent | Error)[] = EVENTS, keyed = false) {
  const requests: TranscriptionRequest[] = []
  const host = scriptedHost({
    keyed,
    overrides: {
      transcribe: async (request) => {
        requests.push(request)
        return { events: play() }
      },
    },
  })
  async function* play() {
    for (const event of events) {
      if (event instanceof Error) throw event
      yield event
    }
  }
  const client = new OpenAI({
    apiKey: 'k',
    baseURL: `${ORIGIN}/v1`,
    fetch: fetchOf(host),
    maxRetries: 0,
  })
  return { host, requests, client }
}

const sound = () => new File(['sound'], 'speech.mp3', { type: 'audio/mpeg' })

describe("OpenAI's client", () => {
  it('sends a form, of which all fields count', async () => {
    const { client, requests } = hearingHost()
    await client.audio.transcriptions.create({
      file: sound(),
      model,
      language: 'de',
      prompt: 'Tag',
      response_format: 'verbose_json',
      temperature: 0.5,
      timestamp_granularities: ['word', 'segment'],
    })
    await client.audio.translations.create({ file: sound(), model })
    const [first, second] = requests
    expect(first).toMatchObject({
      model,
      task: 'transcribe',
      language: 'de',
      prompt: 'Tag',
      temperature: 0.5,
      hasSegments: true,
      hasWords: true,
    })
    expect(await first?.file.text()).toBe('sound')
    const { file: _, ...rest } = second ?? {}
    expect(rest).toEqual({
      model,
      task: 'translate',
      isStreamed: false,
      hasSegments: false,
      hasWords: false,
    })
  })

  it('gets each format', async () => {
    const { client } = hearingHost()
    const ask = (response_format: 'json' | 'text' | 'srt' | 'vtt' | 'verbose_json') =>
      client.audio.transcriptions.create({ file: sound(), model, response_format })
    const usage = { type: 'duration', seconds: 3661.5 }
    expect(await ask('json')).toEqual({ text: 'Good day. --> Bye.', usage })
    expect(await ask('text')).toBe('Good day. --> Bye.\n')
    expect(await ask('srt')).toBe(
      '1\n00:00:00,000 --> 00:00:01,260\nGood day.\n\n' +
        '2\n00:59:59,999 --> 01:01:01,500\n-> Bye.\n\n',
    )
    expect(await ask('vtt')).toBe(
      'WEBVTT\n\n00:00:00.000 --> 00:00:01.260\nGood day.\n\n' +
        '00:59:59.999 --> 01:01:01.500\n-> Bye.\n\n',
    )
    expect(await ask('verbose_json')).toEqual({
      task: 'transcribe',
      language: 'german',
      duration: 3661.5,
      text: 'Good day. --> Bye.',
      segments: [
        {
          id: 0,
          seek: 0,
          start: 0,
          end: 1.26,
          text: ' Good day.',
          tokens: [100, 7, 8, 163],
          temperature: 0.5,
          avg_logprob: -0.25,
          compression_ratio: 0.9,
          no_speech_prob: 0.01,
        },
        expect.objectContaining({ id: 1, seek: 3000, avg_logprob: -0.5 }),
      ],
      usage,
    })
  })

  it('gets words alone if it wants no segments, and English as the language of a translation', async () => {
    const { client } = hearingHost()
    const verbose = { file: sound(), model, response_format: 'verbose_json' } as const
    const timed = await client.audio.transcriptions.create({
      ...verbose,
      timestamp_granularities: ['word'],
    })
    expect(timed.words).toEqual(TRANSCRIPT.words)
    expect(timed).not.toHaveProperty('segments')
    const translated = await client.audio.translations.create(verbose)
    expect(translated).toMatchObject({ task: 'translate', language: 'english' })
  })

  it('reads the text as it is written', async () => {
    const { client } = hearingHost()
    const stream = await client.audio.transcriptions.create({ file: sound(), model, stream: true })
    expect(await collect(stream)).toEqual([
      { type: 'transcript.text.delta', delta: 'Good day.' },
      { type: 'transcript.text.delta', delta: ' --> Bye.' },
      { type: 'transcript.text.done', text: 'Good day. --> Bye.' },
    ])
  })

  it('gets the error of a stream that fails, and no text that breaks off', async () => {
    const lost = new InoriginError('internal', 'The device was lost.', { code: 'device_lost' })
    const { client } = hearingHost([...EVENTS.slice(0, 3), lost])
    const asked = { file: sound(), model }
    const stream = await client.audio.transcriptions.create({ ...asked, stream: true })
    await expect(collect(stream)).rejects.toMatchObject({ code: 'device_lost' })
    const text = client.audio.transcriptions.create({ ...asked, response_format: 'text' })
    await expect(text).rejects.toThrow('The device was lost.')
  })
})

/** Sends a form. Fields may be lists, of which each value is sent. */
function sendForm(fields: Record<string, unknown>, path = PATH, host = hearingHost().host) {
  const form = new FormData()
  const all = { file: sound(), model, ...fields }
  for (const [name, value] of Object.entries(all))
    for (const one of [value].flat() as (string | Blob | undefined)[])
      if (one !== undefined) form.append(name, one)
  return handle(new Request(ORIGIN + path, { method: 'POST', body: form }), host)
}

describe('A form', () => {
  it.each<[Record<string, unknown>, string, RegExp]>([
    [{ file: undefined }, 'file', /is required/],
    [{ file: 'text' }, 'file', /must be a file, not "text"/],
    [{ file: new File([], 'empty.mp3') }, 'file', /a file that is not empty/],
    [{ file: [sound(), sound()] }, 'file', /must be sent once/],
    [{ model: undefined }, 'model', /is required/],
    [{ model: ['@a/b', '@a/c'] }, 'model', /must be sent once/],
    [{ model: sound() }, 'model', /a string/],
    [{ language: '' }, 'language', /a string that is not empty/],
    [{ response_format: 'diarized_json' }, 'response_format', /one of json, text, srt/],
    [{ temperature: '2' }, 'temperature', /a number from 0 to 1, not 2/],
    [{ temperature: 'hot' }, 'temperature', /a number from 0 to 1, not "hot"/],
    [{ temperature: '' }, 'temperature', /a number from 0 to 1/],
    [{ seed: '0.5' }, 'seed', /an integer of at least 0/],
    [{ stream: 'yes' }, 'stream', /true or false, not "yes"/],
    [{ stream: 'true', response_format: 'srt' }, 'response_format', /json or text with `stream`/],
    [{ 'timestamp_granularities[]': 'word' }, 'response_format', /verbose_json with/],
    [
      { 'timestamp_granularities[]': ['word', 'line'], response_format: 'verbose_json' },
      'timestamp_granularities[1]',
      /one of segment, word/,
    ],
    [{ 'include[]': 'logprobs' }, 'include', /leave it out/],
    [{ chunking_strategy: 'auto' }, 'chunking_strategy', /leave it out/],
  ])('is refused for %j', async (fields, param, why) => {
    const error = await errorOf(await sendForm(fields), 400)
    expect(error.param).toBe(param)
    expect(error.message).toMatch(why)
  })

  it('has no times of words in a translation', async () => {
    const fields = { 'timestamp_granularities[]': 'word', response_format: 'verbose_json' }
    const error = await errorOf(await sendForm(fields, '/v1/audio/translations'), 400)
    expect(error.param).toBe('timestamp_granularities')
  })

  it('may have unknown fields, which are named', async () => {
    const response = await sendForm({ mood: 'good', __proto__x: 'a', 'list[]': ['a', 'b'] })
    expect(response.status).toBe(200)
    expect(response.headers.get('x-inorigin-ignored')).toBe('mood, __proto__x, list')
  })

  it('names fields of the model by those of the form', async () => {
    const refusal = (param: string) =>
      new InoriginError('invalid_request', `${param}: is wrong.`, { code: 'invalid_input', param })
    const ask = async (param: string) =>
      errorOf(await sendForm({}, PATH, hearingHost([refusal(param)]).host), 400)
    expect(await ask('inputs.audio')).toMatchObject({ param: 'file', message: 'file: is wrong.' })
    expect(await ask('inputs.language')).toMatchObject({ param: 'language' })
  })
})

describe('A body', () => {
  const boundary = 'x'
  const type = `multipart/form-data; boundary=${boundary}`
  const part = (name: string, value: string): string =>
    `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
  const sendBody = (body: BodyInit, contentType: string, host = hearingHost().host) =>
    handle(
      new Request(ORIGIN + PATH, {
        method: 'POST',
        headers: { 'content-type': contentType },
        body,
        duplex: 'half',
      } as RequestInit),
      host,
    )

  it.each([
    ['JSON', '{}', 'application/json', 'invalid_content_type'],
    ['of no type', 'x', '', 'invalid_content_type'],
    [
      'of a type without a boundary',
      part('model', model),
      'multipart/form-data',
      'invalid_content_type',
    ],
    ['without an end', part('model', model).slice(0, -20), type, 'invalid_form'],
    [
      'with another boundary',
      part('model', model),
      'multipart/form-data; boundary=y',
      'invalid_form',
    ],
    ['that is empty', '', type, 'invalid_form'],
    ['that is no form', '\0'.repeat(30 * MIB), type, 'invalid_form'],
  ])('%s is refused', async (_name, body, contentType, code) => {
    expect((await errorOf(await sendBody(body, contentType), 400)).code).toBe(code)
  })

  it('of more than 32 MiB is refused before it is read', async () => {
    let read = 0
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        read += 1
        controller.enqueue(new Uint8Array(MIB))
      },
    })
    expect((await errorOf(await sendBody(endless, type), 413)).code).toBe('request_too_large')
    expect(read).toBeLessThan(40)
  })

  it('needs a valid API key first', async () => {
    const { host } = hearingHost(EVENTS, true)
    expect((await errorOf(await sendBody('', type, host), 401)).type).toBe('authentication_error')
    const request = new Request(ORIGIN + PATH, {
      method: 'POST',
      headers: { 'content-type': type, authorization: `Bearer ${KEY}` },
      body: '',
    })
    expect((await errorOf(await handle(request, host), 400)).code).toBe('invalid_form')
  })
})

test('names of languages are those of Whisper', () => {
  const codes = ['en', 'zh', 'yue', 'bn', 'my', 'nn', 'no', 'tl', 'mi', 'jw', 'haw', 'ht', 'si']
  expect(codes.map(toLanguageName)).toEqual([
    'english',
    'chinese',
    'cantonese',
    'bengali',
    'myanmar',
    'nynorsk',
    'norwegian',
    'tagalog',
    'maori',
    'javanese',
    'hawaiian',
    'haitian creole',
    'sinhala',
  ])
})
