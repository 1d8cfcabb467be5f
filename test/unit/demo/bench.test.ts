/** The benchmark page: its requests to the endpoint, and what it says of drafts. */
import { expect, test } from 'vitest'
import { openEndpoint } from '../../../demo/bench/endpoint.ts'
import { decodeTwice } from '../../../demo/bench/measure.ts'
import { toRows } from '../../../demo/bench/report.ts'
import type { BenchResult, DecodeRate } from '../../../demo/bench/result.ts'
import type { Server } from '../../../src/index.ts'
import type { Usage } from '../../../src/types/index.ts'
import { fetchOf, ORIGIN, scriptedHost, TINY } from '../wire/scripted-host.ts'

/** Opens the endpoint of a page whose model always answers with this usage. */
async function open(usage: Usage) {
  const host = scriptedHost({
    script: [
      { type: 'start', promptTokens: usage.promptTokens, cachedTokens: usage.cachedTokens },
      { type: 'text', text: 'Hello' },
      { type: 'finish', reason: 'length', stopSequence: null, usage },
    ],
  })
  const page = { controlled: false, baseURL: `${ORIGIN}/v1`, fetch: fetchOf(host) }
  const { signal } = new AbortController()
  return { host, endpoint: await openEndpoint(page as unknown as Server, TINY.tag, signal) }
}

const USAGE: Usage = { promptTokens: 9, cachedTokens: 4, completionTokens: 6, reasoningTokens: 0 }

test('measures an answer again without drafts if it could have some', async () => {
  const drafts = { accepted: 2, rejected: 5 }
  const { host, endpoint } = await open({ ...USAGE, drafts })
  const { run } = await decodeTwice(endpoint, [{ role: 'user', content: 'Hi' }], 6)
  expect(run).toMatchObject({ promptTokens: 9, cachedTokens: 4, completionTokens: 6, drafts })
  const [first, second, ...others] = host.requests
  expect(others).toEqual([])
  expect(first?.maxDraftTokens).toBeUndefined()
  expect(second).toEqual({ ...first, maxDraftTokens: 0 })
})

test('measures an answer once if it could have no drafts', async () => {
  const { host, endpoint } = await open(USAGE)
  const { run, withoutDrafts } = await decodeTwice(endpoint, [{ role: 'user', content: 'Hi' }], 6)
  expect(host.requests).toHaveLength(1)
  expect(run.drafts).toBeNull()
  expect(withoutDrafts).toBe(run)
})

test('says how many drafts were accepted, and the rate without them', () => {
  const rows = (changes: Partial<DecodeRate>): string[] => {
    const decode: DecodeRate = {
      contextTokens: 48,
      tokensPerSecond: 150,
      tokensPerSecondWithoutDrafts: 70,
      acceptedDraftTokens: 0,
      rejectedDraftTokens: 0,
      ...changes,
    }
    const { short, ...rest } = { short: decode, middle: decode, long: decode }
    const result = {
      load: { downloadMs: null, storedMs: 1 },
      firstToken: {},
      decode: { short, ...rest },
      concurrent: { streams: 4, ratio: 1 },
      predict: null,
      settings: {},
      implementation: { bytes: 1 },
      environment: { wasm: {} },
    } as BenchResult
    return toRows(result).flatMap(([name, value]) => (name.startsWith('Decode') ? value : []))
  }
  expect(rows({ acceptedDraftTokens: 12, rejectedDraftTokens: 9 })).toEqual(
    Array(3).fill(
      '150 tokens/s (after 48 tokens), 12 of 21 draft tokens accepted, without: 70.0 tokens/s',
    ),
  )
  expect(rows({})).toEqual(Array(3).fill('150 tokens/s (after 48 tokens), no drafts'))
  const [unmeasured] = rows({ rejectedDraftTokens: 3, tokensPerSecondWithoutDrafts: null })
  expect(unmeasured).toMatch(/, 0 of 3 draft tokens accepted, without: not measured$/)
})
