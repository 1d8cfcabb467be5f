/** `POST /v1/audio/speech`: what OpenAI's clients send, and what they get. */
import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import type { SpeechEvent, SpeechRequest } from '../../../src/types/index.ts'
import { handle } from '../../../src/wire/handler.ts'
import { scriptedHost, send } from './scripted-host.ts'

const RATE = 16_000
const body = { model: '@acme/voice', input: 'One. Two.', voice: 'default' }

const part = (...samples: number[]): SpeechEvent => ({
  type: 'audio',
  samples: Int16Array.from(samples),
  tokens: samples.length,
})

const PARTS = [{ type: 'heartbeat' } as const, part(1, -2), part(3)]

/** Returns a host that says these parts, and the requests that it gets. */
function voice(parts: AsyncIterable<SpeechEvent> | Iterable<SpeechEvent> = PARTS) {
  const requests: SpeechRequest[] = []
  async function* events(): AsyncGenerator<SpeechEvent> {
    yield* parts
    yield { type: 'finish' }
  }
  const host = scriptedHost({
    overrides: {
      speak: async (request) => {
        requests.push(request)
        return { rate: RATE, events: events() }
      },
    },
  })
  return { host, requests }
}

async function speak(fields: object) {
  const { host, requests } = voice()
  const response = await send(host, '/v1/audio/speech', { body: { ...body, ...fields } })
  return { response, requests, status: response.status }
}

const bytesOf = async (response: Response) => new Uint8Array(await response.arrayBuffer())
const SAMPLES = [1, 0, 254, 255, 3, 0]

describe('Speech', () => {
  it('is a WAV file of a length that is not known', async () => {
    const { response, requests } = await speak({})
    expect(response.headers.get('content-type')).toBe('audio/wav')
    expect(requests).toEqual([{ ...body, speed: 1 }])
    const bytes = await bytesOf(response)
    const view = new DataView(bytes.buffer)
    const text = (from: number, to: number) => new TextDecoder().decode(bytes.subarray(from, to))
    expect([text(0, 4), text(8, 16), text(36, 40)]).toEqual(['RIFF', 'WAVEfmt ', 'data'])
    expect([4, 40].map((at) => view.getUint32(at, true))).toEqual([0xffffffff, 0xffffffff])
    // PCM, one channel, 16 bits.
    expect([20, 22, 32, 34].map((at) => view.getUint16(at, true))).toEqual([1, 1, 2, 16])
    expect([24, 28].map((at) => view.getUint32(at, true))).toEqual([RATE, 2 * RATE])
    expect([...bytes.subarray(44)]).toEqual(SAMPLES)
  })

  it('is samples alone as pcm', async () => {
    const { response } = await speak({ response_format: 'pcm' })
    expect(response.headers.get('content-type')).toBe('audio/pcm')
    expect([...(await bytesOf(response))]).toEqual(SAMPLES)
  })

  it('is events if they are asked for', async () => {
    const { response } = await speak({ response_format: 'pcm', stream_format: 'sse' })
    expect(response.headers.get('content-type')).toMatch('text/event-stream')
    const events = (await response.text()).split('\n\n').filter((each) => each.startsWith('data: '))
    expect(events.map((each) => JSON.parse(each.slice(6)) as unknown)).toEqual([
      { type: 'speech.audio.delta', audio: btoa('\x01\0\xfe\xff') },
      { type: 'speech.audio.delta', audio: btoa('\x03\0') },
      {
        type: 'speech.audio.done',
        usage: { input_tokens: 3, output_tokens: 0, total_tokens: 3 },
      },
    ])
  })

  it('begins before its last sentence is made', async () => {
    let finish = () => {}
    const made = new Promise<void>((resolve) => (finish = resolve))
    async function* slowly(): AsyncGenerator<SpeechEvent> {
      yield part(1)
      await made
      yield part(2)
    }
    const response = await send(voice(slowly()).host, '/v1/audio/speech', { body })
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    expect((await reader.read()).value?.length).toBe(44 + 2)
    finish()
    expect([...((await reader.read()).value ?? [])]).toEqual([2, 0])
  })

  it('that fails in the middle is no whole sound, and events name the error', async () => {
    async function* broken(): AsyncGenerator<SpeechEvent> {
      yield part(1)
      throw new InoriginError('internal', 'Broken.')
    }
    const sound = await send(voice(broken()).host, '/v1/audio/speech', { body })
    await expect(sound.arrayBuffer()).rejects.toThrow('Broken.')
    const events = { ...body, stream_format: 'sse' }
    const stream = await send(voice(broken()).host, '/v1/audio/speech', { body: events })
    expect(await stream.text()).toMatch(/data: \{"type":"error","error":\{"message":"Broken\."/)
  })

  it('is read by the client of OpenAI', async () => {
    const { host, requests } = voice()
    const client = new OpenAI({
      apiKey: 'k',
      baseURL: 'http://localhost/v1',
      fetch: async (url, init) => handle(new Request(url as string, init as RequestInit), host),
    })
    const response = await client.audio.speech.create({
      ...body,
      voice: { id: 'anna' },
      speed: 0.5,
      response_format: 'pcm',
      instructions: 'Speak slowly.',
    })
    expect([...(await bytesOf(response))]).toEqual(SAMPLES)
    expect(response.headers.get('x-inorigin-ignored')).toBe('instructions')
    expect(requests).toEqual([{ ...body, voice: 'anna', speed: 0.5 }])
  })

  it.each<[object, string, RegExp]>([
    [{ input: undefined }, 'input', /is required/],
    [{ input: '' }, 'input', /a string that is not empty/],
    [{ input: 'a'.repeat(4097) }, 'input', /a string of at most 4096 characters/],
    [{ voice: 5 }, 'voice', /a string, or an object with an id/],
    [{ response_format: 'mp3' }, 'response_format', /one of wav, pcm/],
    [{ speed: 0.2 }, 'speed', /a number from 0\.25 to 4/],
    [{ stream_format: 'ndjson' }, 'stream_format', /one of audio, sse/],
  ])('is refused for %j', async (fields, param, why) => {
    const { response, status } = await speak(fields)
    const { error } = await response.json()
    expect(status).toBe(400)
    expect(error.param).toBe(param)
    expect(error.message).toMatch(why)
  })
})
