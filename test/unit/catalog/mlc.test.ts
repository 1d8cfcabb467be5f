/** Models that MLC compiled, from their entry in a catalog to their files. */
import { createHash } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { MLC_LIST } from '../../../src/catalog/mlc/list.ts'
import type { MlcRecord } from '../../../src/catalog/mlc/record-schema.ts'
import { resolveMlc } from '../../../src/catalog/mlc/resolve-mlc.ts'
import type { ModelEntry } from '../../../src/catalog/schema.ts'
import { referencesMlcList } from '../../../src/catalog/validate.ts'
import { refreshCatalog } from '../../../src/cli/commands/refresh.ts'
import { type Hub, openHub, repositoryOf } from '../../support/hub.ts'
import { LIBRARY, mlcFiles } from '../../support/mlc.ts'
import { serveStatic, type StaticServer } from '../../support/static.ts'
import { freshFolder } from '../cli/graphs.ts'
import { HASH, thrownBy, validate } from './entries.ts'

const ID = 'SmolLM2-360M-Instruct-q4f16_1-MLC'
const WIDER = 'SmolLM2-360M-Instruct-q4f32_1-MLC'
const COMMIT = 'c'.repeat(40)
const RECORD: MlcRecord = { model_id: 'own-q4f32_1', model: './own', model_lib: 'own/library.wasm' }

const expand = (entry: object) => {
  const document = { version: 1, entries: [{ tag: '@me/mlc', ...entry }] }
  return validate(document, { mlc: MLC_LIST }).entries[0] as ModelEntry
}

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
const sri = (bytes: Uint8Array): string =>
  `sha512-${createHash('sha512').update(bytes).digest('base64')}`

describe('An entry', () => {
  test('by an id of the list is that model and then the one of 32-bit floats', () => {
    const { mlc, implementations, ...entry } = expand({ mlc: ID })
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
    const half = { features: ['shader-f16'], memory: Math.ceil(376.06 * 2 ** 20) }
    const full = { memory: Math.ceil(579.61 * 2 ** 20) }
    expect(implementations).toMatchObject([
      { id: ID, engine: 'mlc', requires: half, resources: [] },
      { id: WIDER, engine: 'mlc', requires: full, resources: [] },
    ])
    expect(implementations[1]?.requires?.features).toBeUndefined()
  })

  test('by a record has its fields, and URLs relative to the catalog', () => {
    const overrides = { context_window_size: 1024, sliding_window_size: -1 }
    const { mlc, implementations, maxInputTokens } = expand({ mlc: { ...RECORD, overrides } })
    const model = 'https://app.test/models/own/'
    expect(mlc).toEqual([{ ...RECORD, overrides, model, model_lib: `${model}library.wasm` }])
    expect(maxInputTokens).toBe(1024)
    expect(implementations).toMatchObject([{ id: RECORD.model_id, overrides, resources: [] }])
  })

  test('by several has only those, with a repository and files of its own', () => {
    const resources = [{ type: 'onnx', url: 'm.onnx', name: 'm.onnx', bytes: 1, sha256: HASH }]
    const own = [{ id: 'own', engine: 'onnx', device: 'wasm', resources }]
    expect(expand({ mlc: [ID] }).implementations.map(({ id }) => id)).toEqual([ID])
    const more = { implementations: own, huggingface: 'me/it', revision: 'v1' }
    const { hub, implementations } = expand({ mlc: [RECORD, ID], ...more })
    expect(implementations.map(({ id }) => id)).toEqual([RECORD.model_id, ID, 'own'])
    expect(hub).toMatchObject({ repository: 'me/it', revision: 'v1', maxInputTokens: 4096 })
  })

  test('of a mirror is resolved there', () => {
    const { mlc } = expand({ mlc: ID, host: 'https://mirror.test/hub' })
    expect(mlc?.[0]?.model).toBe(`https://mirror.test/hub/mlc-ai/${ID}/`)
    expect(mlc?.[0]?.model_lib).toMatch(/^https:\/\/raw\.githubusercontent\.com\//)
  })

  test.each<[unknown, string, RegExp]>([
    [
      'SmolLM2-360M-Instruct-q4f16',
      'mlc',
      /WebLLM \d+\.\d+\.\d+ has no model ".+"\. Similar: SmolLM2-360M-Instruct-q4f16_1-MLC, /,
    ],
    [[RECORD, 'smollm2'], 'mlc[1]', /WebLLM .+ has no model "smollm2"/],
    ['snowflake-arctic-embed-s-q0f32-MLC-b4', 'mlc', /.+ turns texts into vectors.+`embeddings`/],
    [{ ...RECORD, model_type: 1 }, 'mlc', /own-q4f32_1 turns texts into vectors/],
    [{ ...RECORD, model_lib: undefined }, 'mlc.model_lib', /./],
    [[{ ...RECORD, model: 'ftp://x/y' }], 'mlc[0].model', /"ftp:\/\/x\/y" is not an http/],
    [{ ...RECORD, colour: 1 }, 'mlc.colour', /./],
    [{ ...RECORD, integrity: { config: 'abc' } }, 'mlc.integrity.config', /a hash looks like/],
    [[RECORD, RECORD], 'mlc', /own-q4f32_1 is listed twice/],
    [[], 'mlc', /./],
    [5, 'mlc', /./],
  ])('with %j is refused at %s', (mlc, place, why) => {
    const { message } = thrownBy(() => expand({ mlc }))
    const [, problem = ''] = message.split(`entries[0].${place}: `)
    expect(problem).toMatch(new RegExp(`^${why.source}`))
  })

  test('has no revision of its own', () => {
    const message = 'entries[0].revision: applies only to `huggingface`'
    expect(() => expand({ mlc: ID, revision: 'main' })).toThrow(message)
  })

  test.each<[unknown, boolean]>([
    [{ entries: [{ mlc: ID }] }, true],
    [{ entries: [{}, { mlc: [RECORD, ID] }] }, true],
    [{ entries: [{ mlc: RECORD }, { huggingface: ID }, null] }, false],
    [{ entries: 'mlc' }, false],
    [null, false],
  ])('needs the list only if it names a model of it: %j', (document, needs) => {
    expect(referencesMlcList(document)).toBe(needs)
  })
})

describe('The files of a record', () => {
  const access = { signal: new AbortController().signal }
  let folder: string
  let hub: Hub
  let plain: StaticServer

  beforeEach(async () => {
    folder = freshFolder({ ...mlcFiles(), 'library.wasm': LIBRARY })
    hub = await openHub({ 'me/model': repositoryOf(folder, COMMIT) })
    const folders = { '/as/webllm/resolve/main/': folder, '/as-it-is/': folder }
    plain = await serveStatic({ folders })
  })

  afterEach(() => Promise.all([hub.close(), plain.close()]))

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

  test('of a hub are those of its commit, and no large one is read', async () => {
    const found = await resolveMlc(atHub(), access)
    const created = '2025-04-29T10:00:00.000Z'
    expect(found).toMatchObject({ revision: COMMIT, created, context: 131_072, features: [] })
    expect(found.resources.map(({ type, name }) => `${type} ${name}`)).toEqual(NAMES)
    const files: Record<string, Uint8Array> = { ...mlcFiles(), 'library.wasm': LIBRARY }
    for (const { name, url, bytes, sha256: hash } of found.resources) {
      expect([bytes, hash]).toEqual([files[name]?.length, sha256(files[name] as Uint8Array)])
      const atCommit = `${hub.url}me/model/resolve/${COMMIT}/${name}`
      expect(url).toBe(name === 'library.wasm' ? atHub().model_lib : atCommit)
    }
    expect(hub.asked.filter((path) => path.includes('params_shard'))).toEqual([])
  })

  test.each(['/as/webllm/', '/as/webllm/resolve/main/', '/as-it-is/'])(
    'of a server at %s are the same',
    async (path) => {
      const found = await resolveMlc(record(`${plain.url}${path}`), access)
      expect(found.revision).toBeNull()
      const config: unknown = await (await fetch(found.resources[0]?.url ?? '')).json()
      expect(config).toMatchObject({ quantization: 'q4f32_1' })
      const listed = await resolveMlc(atHub(), access)
      const facts = ({ resources }: typeof found) =>
        resources.map(({ type, name, bytes, sha256: hash }) => [type, name, bytes, hash])
      expect(facts(found)).toEqual(facts(listed))
    },
  )

  test('say which features a GPU needs, and a context that the record replaces', async () => {
    const config = mlcFiles({ quantization: 'q4f16_1' })['mlc-chat-config.json']
    writeFileSync(join(folder, 'mlc-chat-config.json'), config as Uint8Array)
    const overrides = { context_window_size: 2048 }
    const found = await resolveMlc(atHub({ overrides }), access)
    expect(found).toMatchObject({ features: ['shader-f16'], context: 2048 })
  })

  test('are checked against its integrity', async () => {
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
      const warned = /is not the file that its `integrity` describes/
      expect(warn.mock.calls.flat().join()).toMatch(warned)
      warn.mockRestore()
    }
  })

  const manifest = { model_manifest: 'mlc-model-manifest.json' }
  test.each<[string, string | null, RegExp, Partial<MlcRecord>?]>([
    ['mlc-chat-config.json', null, /mlc-chat-config\.json/],
    ['tokenizer.json', null, /it has no tokenizer\.json/],
    ['tensor-cache.json', null, /it has no tensor-cache\.json/],
    ['tensor-cache.json', '{"records": 1}', /is not a list of weights/],
    ['params_shard_1.bin', null, /it has no params_shard_1\.bin/],
    [
      'params_shard_0.bin',
      'x'.repeat(20_000),
      /shard_0\.bin has 20000 bytes and should have 30000/,
    ],
    ['library.wasm', null, /its library .+ was not found/],
    ['library.wasm', 'MZ', /is not a WebAssembly module/],
    ['mlc-model-manifest.json', null, /it has no mlc-model-manifest\.json/, manifest],
  ])('are refused if %s is %j', async (name, content, message, changes) => {
    if (content === null) rmSync(join(folder, name), { force: true })
    else writeFileSync(join(folder, name), content)
    hub.repositories = { 'me/model': repositoryOf(folder, COMMIT) }
    for (const at of [atHub(changes), record(`${plain.url}/as-it-is/`, changes)]) {
      await expect(resolveMlc(at, access)).rejects.toMatchObject({
        kind: 'unavailable',
        code: 'hub_unfit',
        message: expect.stringMatching(message),
      })
    }
  })

  test('of a server that fails can be requested again', async () => {
    hub.refuseWith = 500
    const failing = { code: 'hub_unreachable', retryAfter: 5 }
    await expect(resolveMlc(atHub(), access)).rejects.toMatchObject(failing)
    const gone = resolveMlc(record('http://127.0.0.1:9/a/b/'), access)
    await expect(gone).rejects.toMatchObject({ code: 'hub_unreachable' })
    const aborted = resolveMlc(atHub(), { signal: AbortSignal.abort() })
    await expect(aborted).rejects.toMatchObject({ kind: 'aborted' })
  })

  test('are written into a catalog by `catalog refresh`, and read from there', async () => {
    const mlc = [atHub(), atHub({ model_id: 'other' })]
    const entries = [
      { tag: '@me/mlc', mlc },
      { tag: '@me/relative', mlc: RECORD },
      { tag: '@me/none', mlc: atHub({ model_lib: `${plain.url}/none.wasm` }) },
    ]
    const file = join(folder, 'catalog.json')
    writeFileSync(file, JSON.stringify({ version: 1, entries }))
    const onEntry = () => undefined
    const { refreshed, failed } = await refreshCatalog({ file, onEntry, ...access })
    expect(refreshed).toEqual(['@me/mlc'])
    expect(failed).toEqual([
      { tag: '@me/relative', why: expect.stringMatching(/relative to the catalog/) },
      { tag: '@me/none', why: expect.stringMatching(/none\.wasm was not found/) },
    ])
    const written = JSON.parse(readFileSync(file, 'utf8'))
    expect(written.entries[1]).toEqual(entries[1])
    const entry = expand(written.entries[0])
    expect(entry.implementations.map(({ id, resources }) => [id, resources.length])).toEqual([
      [RECORD.model_id, NAMES.length],
      ['other', NAMES.length],
    ])
    expect(entry).toMatchObject({ created: '2025-04-29T10:00:00.000Z', maxInputTokens: 4096 })
  })
})
