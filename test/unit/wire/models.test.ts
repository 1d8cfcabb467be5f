import { describe, expect, it } from 'vitest'
import type { Model } from '../../../src/types/index.ts'
import { errorOf, scriptedHost, SEEING, send, TINY } from './scripted-host.ts'

const no = { supported: false }
const yes = { supported: true }

describe('models', () => {
  it('are listed for both styles', async () => {
    expect(await (await send(scriptedHost(), '/v1/models')).json()).toEqual({
      object: 'list',
      data: [
        {
          id: '@acme/tiny',
          type: 'model',
          object: 'model',
          created: 1772600767,
          owned_by: 'acme',
          display_name: 'Tiny',
          created_at: '2026-03-04T05:06:07.000Z',
          max_input_tokens: 2048,
          max_tokens: 512,
          capabilities: {
            batch: no,
            citations: no,
            code_execution: no,
            context_management: no,
            effort: { ...no, low: no, medium: no, high: no, xhigh: no, max: no },
            image_input: no,
            pdf_input: no,
            server_tools: { ...no, code_execution: no, web_search: no },
            structured_outputs: no,
            thinking: {
              ...no,
              types: { adaptive: no, between_tools: no, disabled: yes, enabled: no },
            },
            tools: no,
            embeddings: no,
          },
        },
        {
          id: '@acme/seeing',
          type: 'model',
          object: 'model',
          created: 1772665200,
          owned_by: 'acme',
          display_name: 'Seeing',
          created_at: '2026-03-04T23:00:00.000Z',
          max_input_tokens: 8192,
          max_tokens: 4096,
          capabilities: {
            batch: no,
            citations: no,
            code_execution: no,
            context_management: no,
            effort: { ...yes, low: yes, medium: yes, high: yes, xhigh: yes, max: yes },
            image_input: yes,
            pdf_input: no,
            server_tools: { ...no, code_execution: no, web_search: no },
            structured_outputs: yes,
            thinking: {
              ...yes,
              types: { adaptive: yes, between_tools: no, disabled: yes, enabled: yes },
            },
            tools: yes,
            embeddings: no,
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
  ])('asked for by %j are %j', async (query, tags) => {
    const body = (await (await send(scriptedHost(), `/v1/models${query}`)).json()) as {
      data: Array<{ id: string }>
    }
    expect(body.data.map(({ id }) => id)).toEqual(tags)
    expect(body).toMatchObject({
      has_more: false,
      first_id: tags[0] ?? null,
      last_id: tags.at(-1) ?? null,
    })
  })

  it.each(['@acme/tiny', '@acme%2Ftiny', '%40acme%2Ftiny', '@acme/tiny/'])(
    'are found by %s',
    async (path) => {
      const list = (await (await send(scriptedHost(), '/v1/models')).json()) as { data: unknown[] }
      expect(await (await send(scriptedHost(), `/v1/models/${path}`)).json()).toEqual(list.data[0])
    },
  )

  it.each(['@acme/none', '@acme', 'tiny', '@acme%2Ftiny%2Fmore', '%zz', '@acme%252Ftiny'])(
    'are not found by %s',
    async (path) => {
      const error = await errorOf(await send(scriptedHost(), `/v1/models/${path}`), 404)
      expect(error).toMatchObject({
        type: 'not_found_error',
        code: 'model_not_found',
        param: 'model',
      })
    },
  )

  it('may be none', async () => {
    const host = scriptedHost({ overrides: { models: () => Promise.resolve([]) } })
    expect(await (await send(host, '/v1/models')).json()).toEqual({
      object: 'list',
      data: [],
      first_id: null,
      last_id: null,
      has_more: false,
    })
  })

  it('are all there is to HEAD', async () => {
    const response = await send(scriptedHost(), '/v1/models', { method: 'HEAD' })
    expect([response.status, await response.text()]).toEqual([200, ''])
  })

  it('that embed say how long their vectors are, and write nothing', async () => {
    const capabilities = { embeddings: { dimensions: 4 } }
    const embedding: Model = { ...TINY, maxInputTokens: 512, maxOutputTokens: null, capabilities }
    const host = scriptedHost({ overrides: { models: () => Promise.resolve([embedding]) } })
    expect(await (await send(host, '/v1/models/@acme/tiny')).json()).toMatchObject({
      max_input_tokens: 512,
      max_tokens: null,
      capabilities: { embeddings: { supported: true, dimensions: 4 }, structured_outputs: no },
    })
  })

  it('may have any tag', async () => {
    const odd: Model = { ...TINY, tag: 'plain' }
    const host = scriptedHost({ overrides: { models: () => Promise.resolve([odd, SEEING]) } })
    expect(await (await send(host, '/v1/models/plain')).json()).toMatchObject({
      id: 'plain',
      owned_by: 'plain',
    })
  })
})
