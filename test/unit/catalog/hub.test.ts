import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { REFRESH, refreshCatalog } from '../../../src/cli/commands/refresh.ts'
import { toModel } from '../../../src/catalog/find-entry.ts'
import {
  completeEntry,
  completeModel,
  expandHubEntry,
  type ResolvedHub,
} from '../../../src/catalog/hub/resolve-hub.ts'
import { findContextTokens, findVariants } from '../../../src/catalog/hub/variants.ts'
import type { Precision } from '../../../src/types/index.ts'
import { resolveHub } from '../../../src/draft/hub.ts'
import { openHub, repositoryOf, type Hub } from '../../support/hub.ts'
import { freshFolder, GUIDE, toPort } from '../cli/graphs.ts'
import { validate } from './entries.ts'

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
  const resolve = (changes: object = {}) => resolveHub(source(changes), access)

  test('lists the files of a commit with their hashes', async () => {
    const { revision, context, created, implementations } = await resolve()
    expect([revision, created]).toEqual([COMMIT, '2025-04-29T10:00:00.000Z'])
    const config = JSON.parse(readFileSync(join(TINY, 'config.json'), 'utf8'))
    expect(context).toBe(config.max_position_embeddings)
    expect(implementations.map(({ id, device }) => `${id} ${device}`)).toEqual([
      'fp32-webgpu webgpu',
      'fp32-wasm wasm',
    ])
    const resources = implementations[1]?.resources ?? []
    for (const { name, url, bytes, sha256 } of resources) {
      const content = readFileSync(join(TINY, name))
      expect(url).toBe(`${hub.url}me/tiny/resolve/${COMMIT}/${name}`)
      const hash = createHash('sha256').update(content).digest('hex')
      expect([bytes, sha256]).toEqual([content.length, hash])
    }
    expect(resources.map(({ name, type }) => `${type} ${name}`)).toEqual([
      'config config.json',
      'config generation_config.json',
      'tokenizer tokenizer.json',
      'tokenizer tokenizer_config.json',
      'onnx onnx/model.onnx',
    ])
  })

  test('marks the implementations of an exact model', async () => {
    const precisionsOf = async (changes: object) =>
      (await resolve(changes)).implementations.map(({ precision }) => precision)
    expect(await precisionsOf({ precision: 'exact' })).toEqual(['exact', 'exact'])
    expect(await precisionsOf({ precision: 'fast' })).toEqual([undefined, undefined])
  })

  const containing = (text: string) => expect.stringContaining(text)
  test.each<[string, object, object]>([
    [
      'a missing repository',
      { repository: 'me/none' },
      { kind: 'not_found', message: containing('me/none') },
    ],
    [
      'a repository without a model for browsers',
      { repository: 'me/empty' },
      { code: 'hub_unfit' },
    ],
    ['a precision that is missing', { dtypes: ['q4'] }, { message: containing('in q4') }],
    [
      'an unreachable hub',
      { host: 'http://127.0.0.1:1/' },
      { code: 'hub_unreachable', message: containing('mirror') },
    ],
  ])('refuses %s', async (_, changes, error) => {
    await expect(resolve(changes)).rejects.toMatchObject(error)
  })

  test.each([
    [401, 'hub_refused'],
    [403, 'hub_refused'],
    [429, 'hub_unreachable'],
    [500, 'hub_unreachable'],
  ])('reports the status %i as %s', async (status, code) => {
    hub.refuseWith = status
    await expect(resolve()).rejects.toMatchObject({ kind: 'unavailable', code })
  })

  const file = { rfilename: 'config.json' }
  test.each([
    ['no commit', { sha: 'main' }],
    ['a negative length', { siblings: [{ ...file, size: -5, blobId: '' }] }],
    ['half a byte', { siblings: [{ ...file, size: 1.5, blobId: '' }] }],
    ['no length', { siblings: [file] }],
  ])('refuses a listing with %s', async (_, lie) => {
    hub.lie = lie
    await expect(resolve()).rejects.toMatchObject({ code: 'hub_unreachable' })
  })

  test.each([
    [undefined, 'tiny-1.0', ['en', 'pt-BR']],
    [{ license: 'mit', language: 'de' }, 'mit', ['de']],
    [{ license: 'other' }, undefined, undefined],
    [{ license: 1, language: { en: true } }, undefined, undefined],
    [{ language: ['multilingual'] }, undefined, undefined],
    ['none', undefined, undefined],
    [null, undefined, undefined],
  ])('reads the card %j', async (cardData, license, languages) => {
    if (cardData !== undefined) hub.lie = { cardData }
    const found = await resolve()
    expect([found.license, found.languages]).toEqual([license, languages])
  })

  test('refuses another commit than the one that the catalog names', async () => {
    expect((await resolve({ revision: COMMIT })).revision).toBe(COMMIT)
    hub.lie = { sha: 'f'.repeat(40) }
    const error = { code: 'hub_unreachable', message: containing('f'.repeat(40)) }
    await expect(resolve({ revision: COMMIT })).rejects.toMatchObject(error)
  })

  test('ignores an invalid time of creation', async () => {
    hub.lie = { createdAt: 'yesterday' }
    expect((await resolve()).created).toBeUndefined()
  })

  test('refuses a small file with another hash', async () => {
    hub.damaged = 'tokenizer_config.json'
    await expect(resolve()).rejects.toThrowError(/tokenizer_config\.json/)
  })

  test('ends when its signal aborts', async () => {
    const signal = AbortSignal.abort()
    await expect(resolveHub(source(), { signal })).rejects.toMatchObject({ kind: 'aborted' })
  })
})

describe('A repository of a predictor', () => {
  const tokens = ['input_ids', 'attention_mask'].map((name) => toPort(`${name} int64 batch,tokens`))
  /** Vectors of tokens, with weights that are not read. `type` is that of the vectors. */
  const encoder = (type: string) => ({
    inputs: tokens,
    outputs: [toPort(`last_hidden_state ${type} batch,tokens,3`)],
    nodes: [{ type: 'Identity', inputs: ['weights'], outputs: ['last_hidden_state'] }],
    weights: [
      { name: 'weights', type: 'float32' as const, shape: [500_000], data: new Uint8Array(2e6) },
    ],
  })
  const pooling = { word_embedding_dimension: 3, pooling_mode_cls_token: true }
  const modules = ['Transformer', 'Pooling'].map((kind, at) => ({
    type: `sentence_transformers.models.${kind}`,
    path: at === 0 ? '' : `${at}_${kind}`,
  }))
  const config = { architectures: ['BertModel'], max_position_embeddings: 64 }

  function put(changes: Parameters<typeof freshFolder>[0] = {}) {
    const folder = freshFolder({
      'config.json': JSON.stringify(config),
      'tokenizer.json': readFileSync(join(GUIDE, 'tokenizer.json')),
      'modules.json': JSON.stringify(modules),
      '1_Pooling/config.json': JSON.stringify(pooling),
      'onnx/model.onnx': encoder('float32'),
      'onnx/model_quantized.onnx': encoder('float32'),
      ...changes,
    })
    hub.repositories['me/encoder'] = repositoryOf(folder, COMMIT)
    hub.asked.length = 0
  }
  const resolve = () => resolveHub(source({ repository: 'me/encoder' }), access)

  test('becomes what its files tell, and its weights are not read', async () => {
    put()
    const { predictor, implementations } = await resolve()
    expect(predictor?.embeddings).toMatchObject({
      input: 'text',
      output: 'embedding',
      dimensions: 3,
      maxInputTokens: 64,
    })
    expect(implementations.map(({ id }) => id)).toEqual(['fp32-webgpu', 'q8-wasm', 'fp32-wasm'])
    for (const { resources, bindings } of implementations) {
      expect(bindings?.['embedding']?.steps).toEqual([{ step: 'pool', by: 'first' }])
      expect(resources.map(({ type }) => type)).toEqual(['config', 'tokenizer', 'onnx'])
      for (const { sha256, url } of resources) {
        expect(sha256).toMatch(/^[0-9a-f]{64}$/)
        expect(url).toContain(`/me/encoder/resolve/${COMMIT}/`)
      }
    }
    const graphs = hub.asked.filter((path) => path.endsWith('.onnx'))
    // Two parts of one of both graphs: what is before the weights, and what is behind them.
    expect(graphs).toHaveLength(2)
    expect(new Set(graphs).size).toBe(1)
  })

  test('is read once more for the precisions in 16 bits', async () => {
    put({ 'onnx/model_fp16.onnx': encoder('float16'), 'onnx/model_q4f16.onnx': encoder('float16') })
    const { implementations } = await resolve()
    expect(implementations.map(({ id }) => id)).toEqual(
      ['q4f16', 'fp16', 'fp32'].map((id) => `${id}-webgpu`).concat('q8-wasm', 'fp32-wasm'),
    )
    const graphs = hub.asked.filter((path) => path.endsWith('.onnx'))
    expect(new Set(graphs).size).toBe(2)
  })

  test.each([
    [
      'an encoder-decoder',
      {
        'config.json': JSON.stringify({
          architectures: ['T5ForConditionalGeneration'],
          is_encoder_decoder: true,
        }),
      },
      'me/encoder cannot run in a browser. me/encoder is an encoder-decoder (T5ForConditionalGeneration)',
    ],
    [
      'vectors that nobody can pool',
      { '1_Pooling/config.json': JSON.stringify({ pooling_mode: 'weighted' }) },
      'The configuration of the pooling asks for weighted',
    ],
  ])('is refused for %s', async (_, changes, message) => {
    put(changes)
    await expect(resolve()).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'hub_unfit',
      message: expect.stringContaining(message),
    })
  })

  test('is written into a catalog, and found there again', async () => {
    put()
    const entry = { tag: '@me/encoder', huggingface: 'me/encoder', name: 'Vectors' }
    const text = JSON.stringify({ version: 1, entries: [entry] })
    const file = join(freshFolder({ 'catalog.json': text }), 'catalog.json')
    const refresh = () =>
      refreshCatalog({ file, host: hub.url, onEntry: () => undefined, ...access })
    for (const _ of ['first', 'again']) {
      expect((await refresh()).refreshed).toEqual(['@me/encoder'])
      const [read] = validate(JSON.parse(readFileSync(file, 'utf8')), { base: hub.url }).entries
      expect(read).toMatchObject({
        type: 'predictor',
        name: 'Vectors',
        license: 'tiny-1.0',
        embeddings: { dimensions: 3 },
        hub: { repository: 'me/encoder', revision: COMMIT },
      })
      expect(read?.implementations).toHaveLength(3)
    }
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
])('The config %j has a context of %s tokens', (config, context) => {
  expect(findContextTokens(config)).toBe(context)
})

describe('findVariants', () => {
  const graphs = (names: string) => names.split(' ').map((name) => `onnx/${name}.onnx`)
  /** Returns the precision, device, features and files of each variant. */
  const find = (
    paths: string[],
    dtypes: Parameters<typeof findVariants>[1] = null,
    ...rest: [boolean?, Precision?]
  ) => {
    const files = paths.map((path) => ({ path, bytes: 1, sha256: null, blobId: '' }))
    const variants = findVariants(files, dtypes, ...rest)
    return variants.map(({ dtype, device, features, files: used }) => {
      const names = used.map(({ path }) => path.replace(/^onnx\//, '').replace(/\.onnx$/, ''))
      return [dtype, device, ...features, ...names].join(' ')
    })
  }
  const data = ['_data_10', '_data', '_data_2', '_data_1'].map((end) => `onnx/model_q4.onnx${end}`)
  const seeing = graphs(
    'embed_tokens decoder_model_merged_q4 vision_encoder_q4 vision_encoder_quantized',
  )

  test.each<[string, string[], string[]]>([
    [
      'every precision that suits a device, best first',
      find(graphs('model model_fp16 model_q4 model_q4f16 model_quantized model_int8')),
      [
        'q4f16 webgpu shader-f16 model_q4f16',
        'q4 webgpu model_q4',
        'fp16 webgpu shader-f16 model_fp16',
        'fp32 webgpu model',
        'q4 wasm model_q4',
        'q8 wasm model_quantized',
        'int8 wasm model_int8',
        'fp32 wasm model',
      ],
    ],
    [
      'every precision for an exact model, those first that change the answers least',
      find(graphs('model model_fp16 model_q4 model_q4f16 model_quantized'), null, false, 'exact'),
      [
        'fp32 webgpu model',
        'fp16 webgpu shader-f16 model_fp16',
        'q4 webgpu model_q4',
        'q4f16 webgpu shader-f16 model_q4f16',
        'fp32 wasm model',
        'q4 wasm model_q4',
        'q8 wasm model_quantized',
      ],
    ],
    [
      'the precisions of an exact model in the order that its entry gives',
      find(graphs('model model_q4 model_quantized'), ['q8', 'fp32'], false, 'exact').slice(2),
      ['q8 wasm model_quantized', 'fp32 wasm model'],
    ],
    [
      'the weights beside a graph, in order',
      find([...graphs('model_q4'), ...data], ['q4']).slice(0, 1),
      [
        'q4 webgpu model_q4 model_q4.onnx_data model_q4.onnx_data_1 model_q4.onnx_data_2 ' +
          'model_q4.onnx_data_10',
      ],
    ],
    [
      'weights by the name that PyTorch and ONNX Runtime GenAI give them',
      find([...graphs('model_q4'), 'onnx/model_q4.onnx.data'], ['q4']).slice(0, 1),
      ['q4 webgpu model_q4 model_q4.onnx.data'],
    ],
    [
      'the token embeddings of a multimodal model, in a precision that exists',
      find(graphs('embed_tokens_fp16 embed_tokens decoder_model_merged_q4f16 vision_encoder_q4'), [
        'q4f16',
      ]).slice(0, 1),
      ['q4f16 webgpu shader-f16 embed_tokens_fp16 decoder_model_merged_q4f16'],
    ],
    [
      'the image encoder of a model with images, in a precision for the device',
      find(seeing, ['q4'], true),
      [
        'q4 webgpu vision_encoder_q4 embed_tokens decoder_model_merged_q4',
        'q4 wasm vision_encoder_quantized embed_tokens decoder_model_merged_q4',
      ],
    ],
    ['nothing without an image encoder', find(seeing.slice(0, 2), ['q4'], true), []],
    [
      'a merged decoder that reads tokens itself',
      find(graphs('decoder_model_merged_quantized')),
      ['q8 wasm decoder_model_merged_quantized'],
    ],
  ])('finds %s', (_, found, expected) => {
    expect(found).toEqual(expected)
  })
})

describe('A short entry', () => {
  const expand = (entry: object) => {
    const base = 'https://app.test/models/catalog.json'
    return validate({ version: 1, entries: [entry] }, { base }).entries[0]
  }

  test('needs a tag and a repository', () => {
    const hubbed = { repository: 'me/tiny', revision: 'main', host: 'https://huggingface.co/' }
    expect(expand(ENTRY)).toMatchObject({
      type: 'model',
      name: 'tiny',
      maxInputTokens: 4096,
      implementations: [],
      hub: { ...hubbed, dtypes: null },
    })
  })

  test('may name a mirror, relative to the catalog', () => {
    const mirrored = { hub: { host: 'https://app.test/hub/' } }
    expect(expand({ ...ENTRY, host: '../hub' })).toMatchObject(mirrored)
  })

  test.each([
    [{ huggingface: 'tiny' }, /entries\[0\]\.huggingface: a repository looks like/],
    [{ dtypes: ['q5'] }, /entries\[0\]\.dtypes\[0\]/],
    [{ license: '' }, /entries\[0\]\.license/],
    [{ languages: [] }, /entries\[0\]\.languages/],
    [{ languages: ['English'] }, /entries\[0\]\.languages\[0\]: a language looks like en/],
    [{ host: 'ftp://x' }, /entries\[0\]\.host/],
    [{ weights: 1 }, /entries\[0\]\.weights/],
    [{ type: 'predictor' }, /entries\[0\]: is a predictor, so it needs "signature"/],
    [{ signature: { inputs: [], outputs: [] } }, /entries\[0\]: has fields of a predictor/],
  ])('is refused with %j', (changes, message) => {
    expect(() => expand({ ...ENTRY, ...changes })).toThrowError(message)
  })

  const resolved = {
    revision: COMMIT,
    created: '2025-04-29T10:00:00.000Z',
    context: 8,
    implementations: [],
  }
  test.each<[object, number | undefined, number, number]>([
    [{}, 32768, 32768, 4096],
    [{}, undefined, 4096, 4096],
    [{ maxInputTokens: 8192 }, 2048, 2048, 2048],
    [{ maxInputTokens: 1000, maxOutputTokens: 2000 }, 2048, 1000, 1000],
  ])('with %j of a model for %s tokens has %i and %i', (limits, context, maxInputTokens, most) => {
    const entry = expandHubEntry({ ...ENTRY, ...limits }, undefined)
    const expected = { maxInputTokens, maxOutputTokens: most }
    expect(completeEntry(entry, { ...resolved, context })).toMatchObject(expected)
  })

  test('has the license and languages of the catalog, else those of the card', () => {
    const card = { license: 'mit', languages: ['de'] }
    const own = { license: 'apache-2.0', languages: ['en'] }
    const complete = (entry: object, found: object) =>
      toModel(
        completeModel(expandHubEntry({ ...ENTRY, ...entry }, undefined), found as ResolvedHub),
      )
    expect(complete(own, { ...resolved, ...card })).toMatchObject(own)
    expect(complete({}, { ...resolved, ...card })).toMatchObject(card)
    // Look-ups that an earlier version stored have neither.
    expect(complete({}, resolved)).not.toHaveProperty('license')
  })

  test('has the time of creation of the catalog, else that of the repository', () => {
    const own = '2024-01-01T00:00:00Z'
    const listed = (created?: string) => expandHubEntry({ ...ENTRY, created }, undefined)
    expect(completeEntry(listed(own), resolved).created).toBe(own)
    expect(completeEntry(listed(), resolved).created).toBe(resolved.created)
  })
})

describe('refreshCatalog', () => {
  test('completes entries by the hub, leaves the others, and reports failures', async () => {
    const entries = [ENTRY, { tag: '@me/none', huggingface: 'me/none', name: 'None' }]
    const folder = freshFolder({ 'catalog.json': JSON.stringify({ version: 1, entries }) })
    const file = join(folder, 'catalog.json')
    const seen: string[] = []
    const onEntry = (tag: string) => seen.push(tag)
    const result = await refreshCatalog({ file, host: hub.url, onEntry, ...access })
    expect(seen).toEqual(['@me/tiny', '@me/none'])
    expect(result).toMatchObject({
      refreshed: ['@me/tiny'],
      failed: [{ tag: '@me/none', why: expect.stringContaining('me/none') }],
      unknown: [],
    })
    const written = JSON.parse(readFileSync(file, 'utf8'))
    const card = { license: 'tiny-1.0', languages: ['en', 'pt-BR'] }
    expect(written.entries[0]).toMatchObject({ ...ENTRY, revision: COMMIT, ...card })
    expect(written.entries[1]).toEqual(entries[1])
    const [entry] = validate(written, { base: hub.url }).entries
    expect(entry?.implementations[1]?.resources[0]).toMatchObject({ name: 'config.json' })
  })

  test('keeps what the catalog states, and names what nobody does', async () => {
    hub.lie = { cardData: { license: 'mit' } }
    const entries = [{ ...ENTRY, license: 'apache-2.0', maxInputTokens: 100_000 }]
    const folder = freshFolder({ 'catalog.json': JSON.stringify({ version: 1, entries }) })
    const file = join(folder, 'catalog.json')
    const result = await refreshCatalog({
      file,
      host: hub.url,
      onEntry: () => undefined,
      ...access,
    })
    expect(result.unknown).toEqual([{ tag: '@me/tiny', fields: ['languages'] }])
    const [entry] = JSON.parse(readFileSync(file, 'utf8')).entries
    expect(entry).toMatchObject({ license: 'apache-2.0', revision: COMMIT })
    // The configuration of the model has the context that it was made for.
    const { max_position_embeddings } = JSON.parse(readFileSync(join(TINY, 'config.json'), 'utf8'))
    expect(entry.maxInputTokens).toBe(max_position_embeddings)
  })

  test('leaves the catalog of the package as it is without a network, and says so', async () => {
    const text = readFileSync(join(import.meta.dirname, '../../../demo/models/hub.json'), 'utf8')
    const file = join(freshFolder({ 'hub.json': text }), 'hub.json')
    const print = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
    vi.spyOn(process.stdout, 'write').mockReturnValue(true)
    const code = await REFRESH.run([file, '--host', 'http://127.0.0.1:1/'])
    const said = print.mock.calls.map(([line]) => String(line)).join('')
    vi.restoreAllMocks()
    expect(code).toBe(1)
    expect(readFileSync(file, 'utf8')).toBe(text)
    for (const { tag } of JSON.parse(text).entries)
      expect(said).toContain(`${tag} was not changed. `)
  })

  test('refuses a file that is no catalog', async () => {
    const file = join(freshFolder({ 'other.json': '{"version":2}' }), 'other.json')
    const refreshing = refreshCatalog({ file, onEntry: () => undefined, ...access })
    await expect(refreshing).rejects.toMatchObject({ code: 'invalid_catalog' })
  })
})
