import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { refreshCatalog } from '../../../src/cli/refresh.ts'
import { findContextTokens } from '../../../src/catalog/context-length.ts'
import { expandHubEntry } from '../../../src/catalog/hub/hub-entry.ts'
import { findVariants } from '../../../src/catalog/hub/variants.ts'
import { completeEntry, resolveHub } from '../../../src/catalog/hub/resolve-hub.ts'
import { validateCatalog } from '../../../src/catalog/validate.ts'
import { openHub, repositoryOf, type Hub } from '../../support/hub.ts'

const TINY = join(import.meta.dirname, '../../models/tiny')
const COMMIT = '0123456789abcdef0123456789abcdef01234567'
const ENTRY = { tag: '@me/tiny', huggingface: 'me/tiny' }
const access = { signal: new AbortController().signal }

let hub: Hub
beforeAll(async () => {
  hub = await openHub({
    'me/tiny': repositoryOf(TINY, COMMIT),
    'me/empty': { files: {}, commit: COMMIT },
  })
})
afterEach(() => Object.assign(hub, { refuseWith: 0, damaged: null, lie: {} }))
afterAll(() => hub.close())

const source = (changes: object = {}) => {
  const { hub: made } = expandHubEntry(ENTRY, hub.url)
  if (!made) throw new Error('no hub')
  return { ...made, ...changes }
}

describe('resolveHub', () => {
  test('lists files at a commit, with the hashes that they have', async () => {
    const { revision, context, created, implementations } = await resolveHub(source(), access)
    expect(revision).toBe(COMMIT)
    expect(created).toBe('2025-04-29T10:00:00.000Z')
    expect(context).toBe(
      JSON.parse(readFileSync(join(TINY, 'config.json'), 'utf8')).max_position_embeddings,
    )
    expect(implementations.map(({ id, device }) => [id, device])).toEqual([
      ['fp32-webgpu', 'webgpu'],
      ['fp32-wasm', 'wasm'],
    ])
    for (const { name, url, bytes, sha256 } of implementations[1]?.resources ?? []) {
      const content = readFileSync(join(TINY, name))
      expect(url).toBe(`${hub.url}me/tiny/resolve/${COMMIT}/${name}`)
      expect(bytes).toBe(content.length)
      expect(sha256).toBe(createHash('sha256').update(content).digest('hex'))
    }
    expect(implementations[1]?.resources.map(({ name, type }) => `${type} ${name}`)).toEqual([
      'config config.json',
      'config generation_config.json',
      'tokenizer tokenizer.json',
      'tokenizer tokenizer_config.json',
      'onnx onnx/model.onnx',
    ])
  })

  test('a repository that is not there is named', async () => {
    await expect(resolveHub(source({ repository: 'me/none' }), access)).rejects.toMatchObject({
      kind: 'not_found',
      message: expect.stringContaining('me/none'),
    })
  })

  test('a repository without a model for the browser is refused', async () => {
    await expect(resolveHub(source({ repository: 'me/empty' }), access)).rejects.toMatchObject({
      code: 'hub_unfit',
    })
  })

  test('a precision that is not there is named', async () => {
    await expect(resolveHub(source({ dtypes: ['q4'] }), access)).rejects.toThrowError(/in q4/)
  })

  test.each([
    [401, 'hub_refused'],
    [403, 'hub_refused'],
    [429, 'hub_unreachable'],
    [500, 'hub_unreachable'],
  ])('a hub that answers %i is %s', async (status, code) => {
    hub.refuseWith = status
    await expect(resolveHub(source(), access)).rejects.toMatchObject({ kind: 'unavailable', code })
  })

  test('a hub that is not there says so, and what to do', async () => {
    const gone = source({ host: 'http://127.0.0.1:1/' })
    await expect(resolveHub(gone, access)).rejects.toMatchObject({
      code: 'hub_unreachable',
      message: expect.stringContaining('mirror'),
    })
  })

  test.each([
    ['no commit', { sha: 'main' }],
    ['a length below nothing', { siblings: [{ rfilename: 'config.json', size: -5, blobId: '' }] }],
    ['half a byte', { siblings: [{ rfilename: 'config.json', size: 1.5, blobId: '' }] }],
    ['no lengths', { siblings: [{ rfilename: 'config.json' }] }],
  ])('a hub that says %s is not believed', async (_, lie) => {
    hub.lie = lie
    await expect(resolveHub(source(), access)).rejects.toMatchObject({ code: 'hub_unreachable' })
  })

  test('when a repository was made is of no weight', async () => {
    hub.lie = { createdAt: 'yesterday' }
    expect((await resolveHub(source(), access)).created).toBeUndefined()
  })

  test('a small file that is not the listed one is not trusted', async () => {
    hub.damaged = 'tokenizer_config.json'
    await expect(resolveHub(source(), access)).rejects.toThrowError(/tokenizer_config\.json/)
  })

  test('ends when its signal aborts', async () => {
    const signal = AbortSignal.abort()
    await expect(resolveHub(source(), { signal })).rejects.toMatchObject({ kind: 'aborted' })
  })
})

test.each([
  [{ max_position_embeddings: 2048 }, 2048],
  [{ text_config: { max_position_embeddings: 4096 }, max_position_embeddings: 8 }, 4096],
  [{ n_positions: 1024 }, 1024],
  [{ max_position_embeddings: 1.5 }, undefined],
  [{ max_position_embeddings: 1e300 }, undefined],
  [{ max_position_embeddings: -1 }, undefined],
  [{ max_position_embeddings: 'many' }, undefined],
])('a model that says %j was made for %s tokens', (config, context) => {
  expect(findContextTokens(config)).toBe(context)
})

describe('findVariants', () => {
  const files = (...paths: string[]) =>
    paths.map((path) => ({ path, bytes: 1, sha256: null, blobId: '' }))
  const found = (paths: string[], dtypes: Parameters<typeof findVariants>[1] = null) =>
    findVariants(files(...paths), dtypes).map(({ dtype, device, features, files: used }) =>
      [dtype, device, ...features, ...used.map(({ path }) => path)].join(' '),
    )

  test('takes every precision that suits a device, best first', () => {
    const paths = ['', '_fp16', '_q4', '_q4f16', '_quantized', '_int8'].map(
      (suffix) => `onnx/model${suffix}.onnx`,
    )
    expect(found(paths)).toEqual([
      'q4f16 webgpu shader-f16 onnx/model_q4f16.onnx',
      'q4 webgpu onnx/model_q4.onnx',
      'fp16 webgpu shader-f16 onnx/model_fp16.onnx',
      'fp32 webgpu onnx/model.onnx',
      'q8 wasm onnx/model_quantized.onnx',
      'int8 wasm onnx/model_int8.onnx',
      'q4 wasm onnx/model_q4.onnx',
      'fp32 wasm onnx/model.onnx',
    ])
  })

  test('takes the weights beside a graph, in order', () => {
    const data = ['_data_10', '_data', '_data_2', '_data_1'].map(
      (end) => `onnx/model_q4.onnx${end}`,
    )
    expect(found(['onnx/model_q4.onnx', ...data], ['q4'])[0]).toBe(
      'q4 webgpu onnx/model_q4.onnx onnx/model_q4.onnx_data onnx/model_q4.onnx_data_1 ' +
        'onnx/model_q4.onnx_data_2 onnx/model_q4.onnx_data_10',
    )
  })

  test('takes the table of words of a model for several kinds of input, in a precision it has', () => {
    const paths = [
      'embed_tokens_fp16',
      'embed_tokens',
      'decoder_model_merged_q4f16',
      'vision_encoder_q4',
    ]
    expect(
      found(
        paths.map((path) => `onnx/${path}.onnx`),
        ['q4f16'],
      )[0],
    ).toBe(
      'q4f16 webgpu shader-f16 onnx/embed_tokens_fp16.onnx onnx/decoder_model_merged_q4f16.onnx',
    )
  })

  test('takes the image encoder of a model that sees images, in a precision for the device', () => {
    const paths = [
      'embed_tokens',
      'decoder_model_merged_q4',
      'vision_encoder_q4',
      'vision_encoder_quantized',
    ].map((path) => `onnx/${path}.onnx`)
    const seeing = (given: string[]) =>
      findVariants(files(...given), ['q4'], true).map(({ device, files: used }) =>
        [device, ...used.map(({ path }) => path)].join(' '),
      )
    expect(seeing(paths)).toEqual([
      'webgpu onnx/vision_encoder_q4.onnx onnx/embed_tokens.onnx onnx/decoder_model_merged_q4.onnx',
      'wasm onnx/vision_encoder_quantized.onnx onnx/embed_tokens.onnx onnx/decoder_model_merged_q4.onnx',
    ])
    expect(seeing(paths.slice(0, 2))).toEqual([])
  })

  test('takes a merged decoder that reads tokens itself', () => {
    expect(found(['onnx/decoder_model_merged_quantized.onnx'])).toEqual([
      'q8 wasm onnx/decoder_model_merged_quantized.onnx',
    ])
  })
})

describe('a short entry', () => {
  const validate = (entry: object) =>
    validateCatalog(
      { version: 1, entries: [entry] },
      {
        source: 'test',
        base: 'https://app.test/models/catalog.json',
        embedded: false,
      },
    ).entries[0]

  test('needs a tag and a repository', () => {
    expect(validate(ENTRY)).toMatchObject({
      type: 'model',
      name: 'tiny',
      maxInputTokens: 4096,
      implementations: [],
      hub: {
        repository: 'me/tiny',
        revision: 'main',
        host: 'https://huggingface.co/',
        dtypes: null,
      },
    })
  })

  test('a mirror may be named from the catalog on', () => {
    expect(validate({ ...ENTRY, host: '../hub' })).toMatchObject({
      hub: { host: 'https://app.test/hub/' },
    })
  })

  test.each([
    [{ ...ENTRY, huggingface: 'tiny' }, /entries\[0\]\.huggingface: a repository looks like/],
    [{ ...ENTRY, dtypes: ['q5'] }, /entries\[0\]\.dtypes\[0\]/],
    [{ ...ENTRY, host: 'ftp://x' }, /entries\[0\]\.host/],
    [{ ...ENTRY, weights: 1 }, /entries\[0\]\.weights/],
  ])('what is wrong in it is named: %j', (entry, message) => {
    expect(() => validate(entry)).toThrowError(message)
  })

  test.each([
    [{}, 32768, { maxInputTokens: 32768, maxOutputTokens: 4096 }],
    [{}, undefined, { maxInputTokens: 4096, maxOutputTokens: 4096 }],
    [{ maxInputTokens: 8192 }, 2048, { maxInputTokens: 2048, maxOutputTokens: 2048 }],
    [
      { maxInputTokens: 1000, maxOutputTokens: 2000 },
      2048,
      { maxInputTokens: 1000, maxOutputTokens: 1000 },
    ],
  ])('%j of a model made for %s tokens', (limits, context, expected) => {
    const entry = expandHubEntry({ ...ENTRY, ...limits }, undefined)
    const resolved = { revision: COMMIT, created: undefined, context, implementations: [] }
    expect(completeEntry(entry, resolved)).toMatchObject(expected)
  })
})

test('a model is as old as the catalog says, else as its repository', () => {
  const resolved = {
    revision: COMMIT,
    created: '2025-04-29T10:00:00.000Z',
    context: 8,
    implementations: [],
  }
  const own = '2024-01-01T00:00:00Z'
  const listed = (created?: string) => expandHubEntry({ ...ENTRY, created }, undefined)
  expect(completeEntry(listed(own), resolved).created).toBe(own)
  expect(completeEntry(listed(), resolved).created).toBe(resolved.created)
})

describe('refreshCatalog', () => {
  let folder: string
  beforeAll(() => (folder = mkdtempSync(join(tmpdir(), 'inorigin-'))))
  afterAll(() => rmSync(folder, { recursive: true }))

  test('writes what the hub says, leaves the rest, and says what could not be had', async () => {
    const file = join(folder, 'catalog.json')
    const entries = [ENTRY, { tag: '@me/none', huggingface: 'me/none', name: 'None' }]
    writeFileSync(file, JSON.stringify({ version: 1, entries }))
    const asked: string[] = []
    const result = await refreshCatalog({
      file,
      host: hub.url,
      onEntry: (tag) => asked.push(tag),
      signal: access.signal,
    })
    expect(asked).toEqual(['@me/tiny', '@me/none'])
    expect(result.refreshed).toEqual(['@me/tiny'])
    expect(result.failed).toMatchObject([
      { tag: '@me/none', why: expect.stringContaining('me/none') },
    ])
    const written = JSON.parse(readFileSync(file, 'utf8'))
    expect(written.entries[1]).toEqual(entries[1])
    expect(written.entries[0]).toMatchObject({ ...ENTRY, revision: COMMIT })
    const [entry] = validateCatalog(written, {
      source: file,
      base: hub.url,
      embedded: false,
    }).entries
    expect(entry?.implementations[1]?.resources[0]).toMatchObject({ name: 'config.json' })
  })

  test('a file that is no catalog is refused', async () => {
    const file = join(folder, 'other.json')
    writeFileSync(file, '{"version":2}')
    const options = { file, onEntry: () => undefined, signal: access.signal }
    await expect(refreshCatalog(options)).rejects.toMatchObject({ code: 'invalid_catalog' })
  })
})
