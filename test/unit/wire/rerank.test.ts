/** `POST /v1/rerank`: what clients of rerankers send, and what they get. */
import { describe, expect, it } from 'vitest'
import { scriptedHost, send } from './scripted-host.ts'
import type { RerankRequest } from '../../../src/types/index.ts'

const model = '@acme/rerank'
const documents = ['one', 'two', 'three']

/** Sends a body to a host whose scores are 0.25, 0.75 and 0.5. Resolves with the answer. */
async function rank(fields: object) {
  const requests: RerankRequest[] = []
  const host = scriptedHost({
    overrides: {
      rerank: async (request) => {
        requests.push(request)
        return { events: events() }
      },
    },
  })
  async function* events() {
    yield { type: 'heartbeat' } as const
    yield { type: 'finish', ranking: { scores: [0.25, 0.75, 0.5], tokens: 9 } } as const
  }
  const body = { model, query: 'q', documents, ...fields }
  const response = await send(host, '/v1/rerank', { body })
  return { status: response.status, json: await response.json(), requests, response }
}

describe('A ranking', () => {
  it('has the best document first', async () => {
    const { status, json, requests } = await rank({})
    expect(status).toBe(200)
    expect(json).toMatchObject({
      model,
      results: [
        { index: 1, relevance_score: 0.75 },
        { index: 2, relevance_score: 0.5 },
        { index: 0, relevance_score: 0.25 },
      ],
      usage: { prompt_tokens: 9, total_tokens: 9 },
      meta: { billed_units: { search_units: 1 } },
    })
    expect(json.results[0]).not.toHaveProperty('document')
    expect(requests).toEqual([{ model, query: 'q', documents }])
  })

  it('has as many documents as are asked for, and their texts', async () => {
    const given = [{ text: 'one' }, 'two', { text: 'three', title: 'T' }]
    const { json, requests } = await rank({ top_n: 1, return_documents: true, documents: given })
    expect(json.results).toEqual([{ index: 1, relevance_score: 0.75, document: { text: 'two' } }])
    expect(requests[0]?.documents).toEqual(documents)
  })

  it('names fields that have no effect', async () => {
    const { response } = await rank({ user: 'u', stream: false, truncation: true })
    expect(response.headers.get('x-inorigin-ignored')).toBe('user')
  })

  it.each<[object, string, RegExp]>([
    [{ query: undefined }, 'query', /is required/],
    [{ query: '' }, 'query', /a string that is not empty/],
    [{ documents: [] }, 'documents', /at least one document/],
    [{ documents: ['a', 5] }, 'documents[1]', /a string, or an object with a text, not 5/],
    [{ documents: Array(1001).fill('a') }, 'documents', /at most 1000 documents/],
    [{ top_n: 0 }, 'top_n', /an integer of at least 1/],
    [{ rank_fields: ['title'] }, 'rank_fields', /leave it out/],
    [{ truncation: false }, 'truncation', /long documents are cut/],
  ])('is refused for %j', async (fields, param, why) => {
    const { status, json } = await rank(fields)
    expect(status).toBe(400)
    expect(json.error.param).toBe(param)
    expect(json.error.message).toMatch(why)
  })
})
