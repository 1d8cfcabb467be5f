/** Models that MLC compiled, from what a catalog says of them to their files. */
import { createHash } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { MLC_LIST } from '../../../src/catalog/mlc/list.ts'
import type { MlcRecord } from '../../../src/catalog/mlc/record-schema.ts'
import { resolveMlc } from '../../../src/catalog/mlc/resolve-mlc.ts'
import type { ModelEntry } from '../../../src/catalog/schema.ts'
import { referencesMlcList, validateCatalog } from '../../../src/catalog/validate.ts'
import { refreshCatalog } from '../../../src/cli/refresh.ts'
import { type Hub, openHub, repositoryOf } from '../../support/hub.ts'
import { LIBRARY, mlcFiles } from '../../support/mlc.ts'
import { serveStatic, type StaticServer } from '../../support/static.ts'
import { freshFolder } from '../cli/graphs.ts'
import { HASH } from './entries.ts'

const ID = 'SmolLM2-360M-Instruct-q4f16_1-MLC'
const WIDER = 'SmolLM2-360M-Instruct-q4f32_1-MLC'
const COMMIT = 'c'.repeat(40)
const RECORD: MlcRecord = { model_id: 'own-q4f32_1', model: './own', model_lib: 'own/library.wasm' }

const validate = (entry: object) =>
  validateCatalog(
    { version: 1, entries: [{ tag: '@me/mlc', ...entry }] },
    {
      source: 'test',
      base: 'https://app.test/models/catalog.json',
      embedded: false,
      mlc: MLC_LIST,
    },
  ).entries[0] as ModelEntry

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
const sri = (bytes: Uint8Array): string =>
  `sha512-${createHash('sha512').update(bytes).digest('base64')}`

describe('an entry', () => {
  test('by an id of the list is the model and, behind it, the one of 32-bit floats', () => {
    const { mlc, implementations, ...entry } = validate({ mlc: ID })
    expect(entry).toEqual({
      type: 'model',
      tag: '@me/mlc',
      name: 'SmolLM2-360M-Instruct',
      created: '1970-01-01T00:00:00Z',
      maxInputTokens: 4096,
      maxOutputTokens: 4096,
    })
    expect(mlc?.map(({ model }) => model)).toEqual(
      [ID, WIDER].map((id) => `https://huggingface.co/mlc-ai/${id}/`),
    )
    expect(implementations).toMatchObject([
      {
        id: ID,
        engine: 'mlc',
        requires: { features: ['shader-f16'], memory: Math.ceil(376.06 * 2 ** 20) },
        resources: [],
      },
      {
        id: WIDER,
        engine: 'mlc',
        requires: { memory: Math.ceil(579.61 * 2 ** 20) },
        resources: [],
      },
    ])
    expect(implementations[1]?.requires?.features).toBeUndefined()
  })

  test('by a record takes what that says; URLs begin at the catalog', () => {
    const overrides = { context_window_size: 1024, sliding_window_size: -1 }
    const { mlc, implementations, maxInputTokens } = validate({ mlc: { ...RECORD, overrides } })
    expect(mlc).toEqual([
      {
        ...RECORD,
        overrides,
        model: 'https://app.test/models/own/',
        model_lib: 'https://app.test/models/own/library.wasm',
      },
    ])
    expect(maxInputTokens).toBe(1024)
    expect(implementations).toMatchObject([{ id: RECORD.model_id, overrides, resources: [] }])
  })

  test('by several has those alone; by a repository and files of its own, those too', () => {
    const resources = [{ type: 'onnx', url: 'm.onnx', name: 'm.onnx', bytes: 1, sha256: HASH }]
    const own = [{ id: 'own', engine: 'onnx', device: 'wasm', resources }]
    expect(validate({ mlc: [ID] }).implementations.map(({ id }) => id)).toEqual([ID])
    const { hub, implementations } = validate({
      mlc: [RECORD, ID],
      implementations: own,
      huggingface: 'me/it',
      revision: 'v1',
    })
    expect(implementations.map(({ id }) => id)).toEqual([RECORD.model_id, ID, 'own'])
    expect(hub).toMatchObject({ repository: 'me/it', revision: 'v1', maxInputTokens: 4096 })
  })

  test('of a mirror is looked up there', () => {
    const { mlc } = validate({ mlc: ID, host: 'https://mirror.test/hub' })
    expect(mlc?.[0]?.model).toBe(`https://mirror.test/hub/mlc-ai/${ID}/`)
    expect(mlc?.[0]?.model_lib).toMatch(/^https:\/\/raw\.githubusercontent\.com\//)
  })

  test.each<[object, RegExp]>([
    [
      { mlc: 'SmolLM2-360M-Instruct-q4f16' },
      /entries\[0\]\.mlc: WebLLM \d+\.\d+\.\d+ has no model ".+"\. Similar: SmolLM2-360M-Instruct-q4f16_1-MLC, /,
    ],
    [{ mlc: [RECORD, 'smollm2'] }, /entries\[0\]\.mlc\[1\]: WebLLM .+ has no model "smollm2"/],
    [
      { mlc: 'snowflake-arctic-embed-s-q0f32-MLC-b4' },
      /entries\[0\]\.mlc: .+ turns texts into vectors.+`embeddings`/,
    ],
    [
      { mlc: { ...RECORD, model_type: 1 } },
      /entries\[0\]\.mlc: own-q4f32_1 turns texts into vectors/,
    ],
    [{ mlc: { ...RECORD, model_lib: undefined } }, /entries\[0\]\.mlc\.model_lib: /],
    [
      { mlc: [{ ...RECORD, model: 'ftp://x/y' }] },
      /entries\[0\]\.mlc\[0\]\.model: "ftp:\/\/x\/y" is not an http/,
    ],
    [{ mlc: { ...RECORD, colour: 1 } }, /entries\[0\]\.mlc\.colour: /],
    [
      { mlc: { ...RECORD, integrity: { config: 'abc' } } },
      /entries\[0\]\.mlc\.integrity\.config: a hash looks like/,
    ],
    [{ mlc: [RECORD, RECORD] }, /entries\[0\]\.mlc: own-q4f32_1 is listed twice/],
    [{ mlc: [] }, /entries\[0\]\.mlc: /],
    [{ mlc: 5 }, /entries\[0\]\.mlc: /],
    [{ mlc: ID, revision: 'main' }, /entries\[0\]\.revision: applies only to `huggingface`/],
  ])('what is wrong in it is named: %j', (entry, message) => {
    expect(() => validate(entry)).toThrowError(message)
  })

  test.each<[unknown, boolean]>([
    [{ entries: [{ mlc: ID }] }, true],
    [{ entries: [{}, { mlc: [RECORD, ID] }] }, true],
    [{ entries: [{ mlc: RECORD }, { huggingface: ID }, null] }, false],
    [{ entries: 'mlc' }, false],
    [null, false],
  ])('needs the list only where it names a model of it: %j', (document, needs) => {
    expect(referencesMlcList(document)).toBe(needs)
  })
})

describe('the files of a record', () => {
  const access = { signal: new AbortController().signal }
  let folder: string
  let hub: Hub
  let plain: StaticServer

  beforeEach(async () => {
    folder = freshFolder({ ...mlcFiles(), 'library.wasm': LIBRARY })
    hub = await openHub({ 'me/model': repositoryOf(folder, COMMIT) })
    plain = await serveStatic({
      folders: { '/as/webllm/resolve/main/': folder, '/as-it-is/': folder },
    })
  })

  afterEach(async () => {
    await hub.close()
    await plain.close()
  })

  const record = (base: string, changes: Partial<MlcRecord> = {}): MlcRecord => ({
    ...RECORD,
    model: base,
    model_lib: `${plain.url}/as-it-is/library.wasm`,
    ...changes,
  })
  const atHub = (changes?: Partial<MlcRecord>) => record(`${hub.url}me/model/`, changes)

  const NAMES = [
    'config mlc-chat-config.json',
    'tokenizer tokenizer.json',
    'tokenizer tokenizer_config.json',
    'wasm library.wasm',
    'mlc tensor-cache.json',
    'mlc params_shard_0.bin',
    'mlc params_shard_1.bin',
  ]

  test('of a hub are those of its commit, of which no large one is read', async () => {
    const found = await resolveMlc(atHub(), access)
    expect(found).toMatchObject({
      revision: COMMIT,
      created: '2025-04-29T10:00:00.000Z',
      context: 131_072,
      features: [],
    })
    expect(found.resources.map(({ type, name }) => `${type} ${name}`)).toEqual(NAMES)
    const files: Record<string, Uint8Array> = { ...mlcFiles(), 'library.wasm': LIBRARY }
    for (const { name, url, bytes, sha256: hash } of found.resources) {
      expect([bytes, hash]).toEqual([files[name]?.length, sha256(files[name] as Uint8Array)])
      expect(url).toBe(
        name === 'library.wasm'
          ? atHub().model_lib
          : `${hub.url}me/model/resolve/${COMMIT}/${name}`,
      )
    }
    expect(hub.asked.filter((path) => path.includes('params_shard'))).toEqual([])
  })

  test.each(['/as/webllm/', '/as/webllm/resolve/main/', '/as-it-is/'])(
    'of a server at %s are the same',
    async (path) => {
      const base = `${plain.url}${path}`
      const found = await resolveMlc(record(base), access)
      const [first] = found.resources
      expect(found.revision).toBeNull()
      expect(await (await fetch(first?.url ?? '')).json()).toMatchObject({
        quantization: 'q4f32_1',
      })
      const listed = await resolveMlc(atHub(), access)
      const facts = ({ resources }: typeof found) =>
        resources.map(({ type, name, bytes, sha256: hash }) => [type, name, bytes, hash])
      expect(facts(found)).toEqual(facts(listed))
    },
  )

  test('tell what a GPU must have, and of a context that the record replaces', async () => {
    writeFileSync(
      join(folder, 'mlc-chat-config.json'),
      mlcFiles({ quantization: 'q4f16_1' })['mlc-chat-config.json'] as Uint8Array,
    )
    expect(
      await resolveMlc(atHub({ overrides: { context_window_size: 2048 } }), access),
    ).toMatchObject({
      features: ['shader-f16'],
      context: 2048,
    })
  })

  test('are those that its integrity describes', async () => {
    const files = mlcFiles()
    const integrity = {
      config: sri(files['mlc-chat-config.json'] as Uint8Array),
      model_lib: sri(LIBRARY),
      tokenizer: { 'tokenizer.json': sri(files['tokenizer.json'] as Uint8Array) },
    }
    await resolveMlc(atHub({ integrity }), access)
    for (const wrong of [
      { config: sri(LIBRARY) },
      { model_lib: sri(Buffer.from('x')) },
      { tokenizer: { 'tokenizer.json': sri(LIBRARY) } },
    ]) {
      const spoilt = atHub({ integrity: { ...integrity, ...wrong } })
      await expect(resolveMlc(spoilt, access)).rejects.toMatchObject({ code: 'hash_mismatch' })
      const warn = vi.spyOn(console, 'warn').mockReturnValue()
      await resolveMlc({ ...spoilt, integrity: { ...spoilt.integrity, onFailure: 'warn' } }, access)
      expect(warn.mock.calls.flat().join()).toMatch(
        /is not the file that its `integrity` describes/,
      )
      warn.mockRestore()
    }
  })

  test.each<[string, (() => void) | Partial<MlcRecord>, RegExp]>([
    ['config', () => rmSync(join(folder, 'mlc-chat-config.json')), /mlc-chat-config\.json/],
    ['tokenizer', () => rmSync(join(folder, 'tokenizer.json')), /it has no tokenizer\.json/],
    ['list', () => rmSync(join(folder, 'tensor-cache.json')), /it has no tensor-cache\.json/],
    [
      'list that is one',
      () => writeFileSync(join(folder, 'tensor-cache.json'), '{"records": 1}'),
      /is not a list of weights/,
    ],
    ['shard', () => rmSync(join(folder, 'params_shard_1.bin')), /it has no params_shard_1\.bin/],
    [
      'whole shard',
      () => writeFileSync(join(folder, 'params_shard_0.bin'), 'x'.repeat(20_000)),
      /params_shard_0\.bin has 20000 bytes and should have 30000/,
    ],
    ['library', () => rmSync(join(folder, 'library.wasm')), /its library .+ was not found/],
    [
      'library that is one',
      () => writeFileSync(join(folder, 'library.wasm'), 'MZ'),
      /is not a WebAssembly module/,
    ],
    [
      'manifest',
      { model_manifest: 'mlc-model-manifest.json' },
      /it has no mlc-model-manifest\.json/,
    ],
  ])('without a %s are none, which is said', async (_, change, message) => {
    if (typeof change === 'function') change()
    hub.repositories = { 'me/model': repositoryOf(folder, COMMIT) }
    const changes = typeof change === 'function' ? {} : change
    for (const at of [atHub(changes), record(`${plain.url}/as-it-is/`, changes)]) {
      await expect(resolveMlc(at, access)).rejects.toMatchObject({
        kind: 'unavailable',
        code: 'hub_unfit',
        message: expect.stringMatching(message),
      })
    }
  })

  test('of a server that fails or says nothing can be asked for again', async () => {
    hub.refuseWith = 500
    await expect(resolveMlc(atHub(), access)).rejects.toMatchObject({
      code: 'hub_unreachable',
      retryAfter: 5,
    })
    await expect(resolveMlc(record('http://127.0.0.1:9/a/b/'), access)).rejects.toMatchObject({
      code: 'hub_unreachable',
    })
    await expect(resolveMlc(atHub(), { signal: AbortSignal.abort() })).rejects.toMatchObject({
      kind: 'aborted',
    })
  })

  test('are written into a catalog by `catalog refresh`, and taken from there', async () => {
    const mlc = [atHub(), atHub({ model_id: 'other' })]
    const entries = [
      { tag: '@me/mlc', mlc },
      { tag: '@me/relative', mlc: RECORD },
      { tag: '@me/none', mlc: atHub({ model_lib: `${plain.url}/none.wasm` }) },
    ]
    const file = join(folder, 'catalog.json')
    writeFileSync(file, JSON.stringify({ version: 1, entries }))
    const { refreshed, failed } = await refreshCatalog({
      file,
      onEntry: () => undefined,
      ...access,
    })
    expect(refreshed).toEqual(['@me/mlc'])
    expect(failed).toEqual([
      { tag: '@me/relative', why: expect.stringMatching(/relative to the catalog/) },
      { tag: '@me/none', why: expect.stringMatching(/none\.wasm was not found/) },
    ])
    const written = JSON.parse(readFileSync(file, 'utf8'))
    expect(written.entries[1]).toEqual(entries[1])
    const entry = validate(written.entries[0])
    expect(entry.implementations.map(({ id, resources }) => [id, resources.length])).toEqual([
      [RECORD.model_id, NAMES.length],
      ['other', NAMES.length],
    ])
    expect(entry).toMatchObject({ created: '2025-04-29T10:00:00.000Z', maxInputTokens: 4096 })
  })
})
