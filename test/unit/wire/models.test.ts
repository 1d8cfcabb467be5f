/** Lists and descriptions: `/v1/models` and `/v1/predictors`, and predictions of clients. */
import { describe, expect, it } from 'vitest'
import type { Model } from '../../../src/types/index.ts'
import { AREA, DIGEST, errorOf, scriptedHost, SEEING, send, TINY } from './scripted-host.ts'

const read = async (path: string, host = scriptedHost()) => (await send(host, path)).json()
const hostOf = (...models: Model[]) => scriptedHost({ overrides: { models: async () => models } })

const no = { supported: false }
const yes = { supported: true }
const NOTHING = {
  batch: no,
  citations: no,
  code_execution: no,
  context_management: no,
  effort: { ...no, low: no, medium: no, high: no, xhigh: no, max: no },
  image_input: no,
  pdf_input: no,
  server_tools: { ...no, code_execution: no, web_search: no },
  structured_outputs: no,
  thinking: { ...no, types: { adaptive: no, between_tools: no, disabled: yes, enabled: no } },
  tools: no,
  embeddings: no,
  rerank: no,
  speech: no,
}

describe('a list of models', () => {
  it('has the description, license and languages of a model only where they are known', async () => {
    const card = { description: 'Small.', license: 'apache-2.0', languages: ['en', 'pt-BR'] }
    const { data } = await read('/v1/models', hostOf({ ...TINY, ...card }, SEEING))
    expect(data[0]).toMatchObject(card)
    const unknown = Object.keys(card)
    expect(Object.keys(data[1]).filter((name) => unknown.includes(name))).toEqual([])
  })

  it('describes each in one form for both styles', async () => {
    const shared = { type: 'model', object: 'model', owned_by: 'acme' }
    expect(await read('/v1/models')).toEqual({
      object: 'list',
      data: [
        {
          ...shared,
          id: '@acme/tiny',
          created: 1772600767,
          display_name: 'Tiny',
          created_at: '2026-03-04T05:06:07.000Z',
          max_input_tokens: 2048,
          max_tokens: 512,
          capabilities: NOTHING,
        },
        {
          ...shared,
          id: '@acme/seeing',
          created: 1772665200,
          display_name: 'Seeing',
          created_at: '2026-03-04T23:00:00.000Z',
          max_input_tokens: 8192,
          max_tokens: 4096,
          capabilities: {
            ...NOTHING,
            effort: { ...yes, low: yes, medium: yes, high: yes, xhigh: yes, max: yes },
            image_input: yes,
            structured_outputs: yes,
            thinking: {
              ...yes,
              types: { adaptive: yes, between_tools: no, disabled: yes, enabled: yes },
            },
            tools: yes,
          },
        },
      ],
      first_id: '@acme/tiny',
      last_id: '@acme/seeing',
      has_more: false,
    })
  })

  it.each([
    ['', ['@acme/tiny', '@acme/seeing']],
    ['?limit=1', ['@acme/tiny', '@acme/seeing']],
    ['?after_id=@acme/tiny', ['@acme/seeing']],
    ['?after_id=%40acme%2Fseeing&limit=1000', []],
    ['?after_id=unknown', ['@acme/tiny', '@acme/seeing']],
    ['?before_id=@acme/seeing', ['@acme/tiny']],
    ['?before_id=@acme/tiny', []],
  ])('with the query %j has %j', async (query, tags) => {
    const { data, ...list } = await read(`/v1/models${query}`)
    expect(data.map(({ id }: { id: string }) => id)).toEqual(tags)
    const ends = { first_id: tags[0] ?? null, last_id: tags.at(-1) ?? null }
    expect(list).toEqual({ object: 'list', has_more: false, ...ends })
  })

  it('may be empty', async () => {
    const ends = { first_id: null, last_id: null, has_more: false }
    expect(await read('/v1/models', hostOf())).toEqual({ object: 'list', data: [], ...ends })
  })
})

describe('a model', () => {
  it.each(['@acme/tiny', '@acme%2Ftiny', '%40acme%2Ftiny', '@acme/tiny/'])(
    'is found by %s',
    async (path) => {
      const { data } = await read('/v1/models')
      expect(await read(`/v1/models/${path}`)).toEqual(data[0])
    },
  )

  it.each(['@acme/none', '@acme', 'tiny', '@acme%2Ftiny%2Fmore', '%zz', '@acme%252Ftiny'])(
    'is not found by %s',
    async (path) => {
      const error = { type: 'not_found_error', code: 'model_not_found', param: 'model' }
      const response = await send(scriptedHost(), `/v1/models/${path}`)
      expect(await errorOf(response, 404)).toMatchObject(error)
    },
  )

  it('that embeds has the length of its vectors, and no limit of output tokens', async () => {
    const capabilities = { embeddings: { dimensions: 4 } }
    const embedder: Model = { ...TINY, maxOutputTokens: null, capabilities }
    expect(await read('/v1/models/@acme/tiny', hostOf(embedder))).toMatchObject({
      max_input_tokens: 2048,
      max_tokens: null,
      capabilities: { embeddings: { supported: true, dimensions: 4 }, structured_outputs: no },
    })
  })

  it('may have any tag', async () => {
    const host = hostOf({ ...TINY, tag: 'plain' }, SEEING)
    const plain = { id: 'plain', owned_by: 'plain' }
    expect(await read('/v1/models/plain', host)).toMatchObject(plain)
  })
})

describe('a predictor', () => {
  it.each(['@yusuf/area', '@yusuf%2Farea', '%40yusuf%2Farea'])(
    'is found by %s, without fields that only its host has',
    async (path) => expect(await read(`/v1/predictors/${path}`)).toEqual(AREA),
  )

  it('that does not exist is an error', async () => {
    const error = await errorOf(await send(scriptedHost(), '/v1/predictors/@yusuf/none'), 404)
    expect(error.type).toBe('not_found_error')
  })
})

describe('a prediction', () => {
  const PATH = '/v1/predictions'
  const body = { tag: AREA.tag, clientId: 'node' }

  it('is created', async () => {
    const host = scriptedHost()
    const sent = { ...body, configurationId: 'c', deviceId: 'd', predictionId: 'pred_0' }
    const response = await send(host, PATH, { body: { ...sent, extra: 1 } })
    expect(response.status).toBe(200)
    expect(response.headers.get('x-inorigin-ignored')).toBe('extra')
    const url = `http://localhost/v1/resources/${DIGEST}`
    expect(await response.json()).toEqual({
      id: 'pred_1',
      tag: AREA.tag,
      configuration: 'c1',
      resources: [{ type: 'onnx', url, name: 'area.onnx' }],
      created: '2026-02-03T04:05:06Z',
    })
    const nothing = { configurationId: null, deviceId: null, predictionId: null }
    await send(host, PATH, { body: { ...body, ...nothing } })
    expect(host.predictions).toEqual([sent, body])
  })

  it.each([
    ['tag', { tag: undefined }],
    ['clientId', { clientId: undefined }],
    ['tag', { tag: 5 }],
    ['clientId', { clientId: '' }],
    ['configurationId', { configurationId: 5 }],
    ['deviceId', { deviceId: {} }],
    ['predictionId', { predictionId: [] }],
  ])('is rejected by its field %s in %j', async (param, wrong) => {
    const response = await send(scriptedHost(), PATH, { body: { ...body, ...wrong } })
    expect((await errorOf(response, 400)).param).toBe(param)
  })
})
