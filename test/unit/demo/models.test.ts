/** Models that a visitor adds: what a text means, what the hub says of it, and what suits a device. */
import { createServer, type Server as HttpServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { countParameters, describeRate, estimateRate } from '../../../demo/estimate.ts'
import { describeForeignModel } from '../../../demo/formats.ts'
import type { ListedModel } from '../../../demo/listing.ts'
import { findRepository } from '../../../demo/models-page/repository.ts'
import { keyOf, toEntry, toSource } from '../../../demo/models-page/source.ts'
import { createKernel, ROW_BYTES, WEIGHT_BYTES } from '../../../demo/probe/kernel.ts'
import { type Place, recommend } from '../../../demo/recommendation.ts'
import type { ModelState } from '../../../src/index.ts'

describe('a text that names a model', () => {
  const QWEN = { huggingface: 'onnx-community/Qwen3-0.6B-ONNX' }

  test.each([
    'onnx-community/Qwen3-0.6B-ONNX',
    ' onnx-community/Qwen3-0.6B-ONNX/ ',
    'https://huggingface.co/onnx-community/Qwen3-0.6B-ONNX',
    'https://huggingface.co/onnx-community/Qwen3-0.6B-ONNX/tree/main',
    'http://www.huggingface.co/onnx-community/Qwen3-0.6B-ONNX/?library=transformers.js#usage',
    'huggingface.co/onnx-community/Qwen3-0.6B-ONNX',
    'hf.co/onnx-community/Qwen3-0.6B-ONNX',
    'https://huggingface.co/api/models/onnx-community/Qwen3-0.6B-ONNX',
  ])('%j means the repository', (text) => {
    expect(toSource(text)).toEqual(QWEN)
  })

  test.each([
    ['me/One/tree/v2', { huggingface: 'me/One', revision: 'v2' }],
    ['me/One/Tiny.Q4_1.gguf', { huggingface: 'me/One', file: 'Tiny.Q4_1.gguf' }],
    [
      'https://huggingface.co/Me/One/blob/main/q4/a-00001-of-00002.gguf?download=true',
      { huggingface: 'Me/One', file: 'q4/a-00001-of-00002.gguf' },
    ],
    ['https://example.com/x/My%20file.gguf', { gguf: 'https://example.com/x/My%20file.gguf' }],
    ['https://example.com/x/model.onnx', undefined],
    ['https://example.com/me/one', undefined],
    ['https://huggingface.co/datasets/me/one', undefined],
    ['me', undefined],
    ['me/../one', undefined],
    ['<b>/x', undefined],
  ])('%j means %j', (text, source) => {
    expect(toSource(text)).toEqual(source)
  })

  test('spellings of one repository have one key, and its files have others', () => {
    expect(keyOf({ huggingface: 'ME/one' })).toBe(keyOf({ huggingface: 'me/One', revision: 'v2' }))
    expect(keyOf({ huggingface: 'me/One', file: 'a.gguf' })).not.toBe(
      keyOf({ huggingface: 'me/One' }),
    )
  })

  test('an entry has a tag in lower case that no other entry has', () => {
    expect(toEntry({ huggingface: 'Me/One.2-B' }, [])).toEqual({
      tag: '@me/one.2-b',
      huggingface: 'Me/One.2-B',
    })
    const file = { huggingface: 'Me/Other', file: 'q4/Tiny.Q4_1-00001-of-00002.gguf' }
    expect(toEntry(file, ['@me/tiny.q4_1', '@me/tiny.q4_1-2']).tag).toBe('@me/tiny.q4_1-3')
    expect(toEntry({ gguf: 'https://example.com/x/My%20file.gguf' }, []).tag).toBe('@me/my-file')
  })
})

describe('a repository of the hub', () => {
  let server: HttpServer | undefined
  afterEach(() => {
    server?.closeAllConnections()
    server?.close()
  })

  /** Asks a hub that answers so for the repository `me/one`. */
  async function find(
    answer: (response: ServerResponse) => void,
    file?: string,
  ): ReturnType<typeof findRepository> {
    const asked: string[] = []
    server = createServer(({ url = '' }, response) => {
      asked.push(url)
      answer(response)
    })
    await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const hub = `http://127.0.0.1:${port}/`
    const { signal } = new AbortController()
    const found = findRepository('me/one', { file, signal, hub })
    await found.catch(() => {})
    expect(asked).toEqual(['/api/models/me/one/revision/main?blobs=true'])
    return found
  }

  const lists =
    (files: Record<string, number>, more: object = {}) =>
    (response: ServerResponse): void => {
      const siblings = Object.entries(files).map(([rfilename, size]) => ({ rfilename, size }))
      const cardData = { license: 'apache-2.0' }
      response.end(JSON.stringify({ id: 'Me/One', gated: false, cardData, siblings, ...more }))
    }

  const refuses =
    (status: number, headers: Record<string, string> = {}) =>
    (response: ServerResponse): void =>
      void response.writeHead(status, headers).end('{"error":"Invalid username or password."}')

  const problemOf = (answer: (response: ServerResponse) => void, file?: string) =>
    find(answer, file).then(
      () => undefined,
      ({ message, canRetry }: { message: string; canRetry: boolean }) => [message, canRetry],
    )

  test('has the spelling of its owner, its license and its graphs', async () => {
    const found = await find(
      lists({ 'onnx/model.onnx': 9, 'onnx/model_q4.onnx': 4, 'config.json': 1 }),
    )
    expect(found).toEqual({ name: 'Me/One', license: 'apache-2.0', gguf: undefined, count: 2 })
  })

  test('has the GGUF file that suits a browser, or the one that is wanted', async () => {
    const files = {
      'mmproj-Q4_K_M.gguf': 1,
      'One.F16.gguf': 9,
      'One.Q4_K_M-00001-of-00002.gguf': 3,
      'One.Q4_K_M-00002-of-00002.gguf': 3,
      'One.Q8_0.gguf': 5,
    }
    const card = { cardData: { license: 'other', license_name: 'lfm1.0' } }
    expect(await find(lists(files, card))).toEqual({
      name: 'Me/One',
      license: 'lfm1.0',
      gguf: { path: 'One.Q4_K_M-00001-of-00002.gguf', bytes: 3 },
      count: 3,
    })
    expect((await find(lists(files), 'one.q8_0.GGUF')).gguf?.path).toBe('One.Q8_0.gguf')
    expect(await problemOf(lists(files), 'Two.gguf')).toEqual([
      expect.stringMatching(/^Me\/One has no file Two\.gguf\. It has One\.F16\.gguf, /),
      false,
    ])
  })

  test.each([
    [
      'safetensors only',
      lists({ 'model.safetensors': 1_200_000_000, 'config.json': 1 }),
      /^Me\/One has only safetensors files \(1\.2 GB\), .* Search the hub for "One ONNX"/,
      false,
    ],
    ['no weights', lists({ 'README.md': 1 }), /^Me\/One has neither ONNX graphs nor GGUF/, false],
    ['gated by its list', lists({ 'onnx/model.onnx': 1 }, { gated: 'manual' }), /is gated/, false],
    ['gated', refuses(401, { 'x-error-code': 'GatedRepo' }), /^me\/one is gated: /, false],
    ['forbidden', refuses(403), /^me\/one is gated: /, false],
    [
      'unknown',
      refuses(401, { 'x-error-code': 'RepoNotFound' }),
      /has no public model me\/one/,
      false,
    ],
    ['unknown to a mirror', refuses(404), /has no public model me\/one/, false],
    [
      'without that revision',
      refuses(404, { 'x-error-code': 'RevisionNotFound' }),
      /revision/,
      false,
    ],
    ['hidden', refuses(401), /shows me\/one to nobody without an account/, false],
    ['down', refuses(503), /answered with 503\. Try again later\./, true],
    ['busy', refuses(429), /answered with 429\. Try again later\./, true],
    [
      'behind a log-in',
      (response: ServerResponse) => void response.end('<!doctype html><p>Log in'),
      /sent no list of files/,
      true,
    ],
    [
      'strange',
      (response: ServerResponse) => void response.end('{"siblings":[null]}'),
      /no list/,
      true,
    ],
    [
      'endless',
      (response: ServerResponse) => {
        const more = (): void => {
          while (response.write(' '.repeat(2 ** 16)));
        }
        response.on('drain', more)
        more()
      },
      /sent no list of files/,
      true,
    ],
    [
      'cut off',
      (response: ServerResponse) => void response.destroy(),
      /cannot be reached now/,
      true,
    ],
  ])('that is %s has a problem in words', async (_, answer, words, canRetry) => {
    expect(await problemOf(answer)).toEqual([expect.stringMatching(words), canRetry])
  })
})

test.each([
  ['model.safetensors', /^model\.safetensors has the format of safetensors, .* GGUF/],
  ['weights.pt', /PyTorch/],
  ['all.zip', /^all\.zip is an archive\. Unpack it/],
  ['photo.png', undefined],
  ['model.onnx', undefined],
])('%s is described as a model of another format: %s', (name, words) => {
  const found = describeForeignModel(name)
  if (words) expect(found).toMatch(words)
  else expect(found).toBeUndefined()
})

describe('estimates', () => {
  test.each([
    ['Qwen3 0.6B', 6e8],
    ['SmolLM2 135M Instruct', 1.35e8],
    ['Gemma 3 1B', 1e9],
    ['LFM2.5-VL 450M', 4.5e8],
    ['134.5M', 1.345e8],
    ['Qwen3-0.6B-ONNX', 6e8],
    ['Large', undefined],
    ['Llama 3', undefined],
    ['4bits', undefined],
  ])('%s has %s parameters', (name, count) => {
    expect(countParameters(name)).toBe(count)
  })

  test('estimated rates are near those of decision 0011', () => {
    const speed = { device: 'one', place: 'wasm', bytesPerSecond: 16e9 } as const
    expect(estimateRate(1.35e8, speed) / 36).toBeCloseTo(1, 0)
    expect(estimateRate(5e8, speed)).toBeGreaterThan(10)
    expect(estimateRate(5e8, speed)).toBeLessThan(15)
    // However fast the memory of a GPU is, a step takes some time.
    expect(estimateRate(1e6, { ...speed, place: 'webgpu' })).toBeLessThan(130)
  })

  test.each([
    [0.3, '~1 tokens/s'],
    [4.4, '~4 tokens/s'],
    [18, '~20 tokens/s'],
  ])('a rate of %s is %s', (rate, words) => {
    expect(describeRate(rate)).toBe(words)
  })

  test('the kernel of the probe computes the sum of products of signed bytes', async () => {
    const { memory, dot } = await createKernel()
    const all = new Int8Array(memory.buffer)
    const weights = all.subarray(WEIGHT_BYTES - ROW_BYTES, WEIGHT_BYTES)
    const input = all.subarray(WEIGHT_BYTES, WEIGHT_BYTES + ROW_BYTES)
    let expected = 0
    for (let at = 0; at < ROW_BYTES; at += 1) {
      weights[at] = (at * 37) % 256
      input[at] = (at * 91 + 5) % 256
      expected += (weights[at] ?? 0) * (input[at] ?? 0)
    }
    expect(dot(WEIGHT_BYTES - ROW_BYTES, WEIGHT_BYTES, ROW_BYTES)).toBe(expected)
    expect(dot(WEIGHT_BYTES - 16, WEIGHT_BYTES + ROW_BYTES - 16, 16)).not.toBe(0)
  })
})

describe('the recommendation', () => {
  const listed = (id: string, name: string, more: Partial<ListedModel> = {}): ListedModel => ({
    id: `@me/${id}`,
    display_name: name,
    ...more,
  })
  const MODELS = [
    listed('small', 'Small 135M', { languages: ['en'] }),
    listed('middle', 'Middle 0.6B', { description: 'It supports many languages.' }),
    listed('german', 'German 0.5B', { languages: ['en', 'de'] }),
    listed('large', 'Large 1.7B', { languages: ['en', 'de'] }),
    listed('huge', 'Huge 7B', { languages: ['en', 'de'] }),
    listed('seeing', 'Seeing 0.6B', { capabilities: { image_input: { supported: true } } }),
    listed('nameless', 'Nameless'),
  ]
  const remote = (tag: ModelState['tag']): ModelState => ({
    tag,
    type: 'model',
    name: tag,
    status: 'remote',
    bytes: null,
    memory: null,
    users: 0,
    device: null,
    servedBy: null,
  })
  const STATES = MODELS.map(({ id }) => remote(id))
  const PLACE: Place = {
    device: 'wasm',
    memory: 2 ** 33,
    free: 1e11,
    language: 'en-US',
    speed: undefined,
  }
  const at = (place: Partial<Place>, states = STATES) =>
    recommend(MODELS, states, { ...PLACE, ...place })
  /** Speed at which a model of that many parameters writes some tokens in a second. */
  const speed = (bytesPerSecond: number) =>
    ({ device: 'one', place: 'wasm', bytesPerSecond }) as const

  test('is the largest that fits, is fast enough and speaks the language', () => {
    expect(at({})?.name).toBe('Middle 0.6B')
    expect(at({ language: 'de' })?.name).toBe('Middle 0.6B')
    expect(at({ device: 'webgpu', language: 'de' })?.name).toBe('Large 1.7B')
    expect(at({ device: 'webgpu', memory: 2 ** 31 })?.name).toBe('Middle 0.6B')
    expect(at({ free: 2e8 })?.name).toBe('Small 135M')
    expect(at({ free: 1e6 })).toBeUndefined()
  })

  test('follows the measured speed of the device', () => {
    expect(at({ speed: speed(1e10) })?.name).toBe('Middle 0.6B')
    expect(at({ speed: speed(2e9) })?.name).toBe('Small 135M')
    expect(at({ device: 'webgpu', speed: speed(3e10) })?.name).toBe('Large 1.7B')
    expect(at({ speed: speed(1e7) })).toBeUndefined()
  })

  test('says its size, its languages and its speed, as estimates where they are', () => {
    expect(at({ language: 'de', speed: speed(9e9) })).toEqual({
      tag: '@me/middle',
      name: 'Middle 0.6B',
      isHere: false,
      size: 'about 600 MB',
      facts: ['about 600 MB to download', 'knows many languages', '~5 tokens/s here (estimate)'],
    })
    const known = STATES.map((state) =>
      state.tag === '@me/large'
        ? { ...state, status: 'stored' as const, bytes: 4e8, memory: 5e8, device: 'wasm' as const }
        : state,
    )
    expect(at({ language: 'de', free: 2e8 }, known)?.facts).toEqual([
      '400 MB, on this device',
      'answers in your language, German',
    ])
  })
})
