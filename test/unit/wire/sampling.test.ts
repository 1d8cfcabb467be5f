import { describe, expect, it } from 'vitest'
import { selectCandidates } from '../../../src/engine/sampling/logits.ts'
import { createSampler } from '../../../src/engine/sampling/sampler.ts'
import type { Sampling } from '../../../src/types/index.ts'
import { chatOf, messageOf, scriptedHost, send } from './scripted-host.ts'

const BODIES = { '/v1/chat/completions': chatOf, '/v1/messages': messageOf }

/** What a field of the body asks of the sampler, without what is left to the model. */
async function samplingOf(path: keyof typeof BODIES, fields: object) {
  const host = scriptedHost()
  const response = await send(host, path, { body: BODIES[path](fields) })
  expect(response.status, await response.text()).toBe(200)
  expect(response.headers.get('x-inorigin-ignored')).toBeNull()
  const given = Object.entries(host.requests[0]?.sampling ?? {})
  return Object.fromEntries(given.filter(([, value]) => value !== undefined)) as Sampling
}

describe.each(['/v1/chat/completions', '/v1/messages'] as const)('the sampling of %s', (path) => {
  it.each([
    [{}, {}],
    [{ temperature: null, top_p: null, top_k: null, seed: null }, {}],
    [
      { temperature: 0.5, top_p: 0.9, top_k: 40, seed: -7 },
      { temperature: 0.5, topP: 0.9, topK: 40, seed: -7 },
    ],
    [
      { top_p: 1, top_k: 0 },
      { topP: 1, topK: 0 },
    ],
    [{ top_p: 1e-9 }, { topP: 1e-9 }],
    [{ top_p: 0 }, { topK: 1 }],
    [{ top_p: 0, top_k: 40 }, { topK: 1 }],
  ])('%j is %j', async (fields, sampling) =>
    expect(await samplingOf(path, fields)).toEqual(sampling),
  )

  it('is of the most probable token alone when the nucleus is empty', async () => {
    const sampling = await samplingOf(path, { top_p: 0, temperature: 2 })
    const penalties = { repetitionPenalty: 1, suppress: [] }
    const defaults = { temperature: 1, topP: 0.9, topK: 0, minP: 0, ...penalties }
    const sampler = createSampler(sampling, defaults, [])
    const row = Float32Array.of(1, 1.001, 1, 1)
    const ask = sampler.ask(null)
    for (let index = 0; index < 50; index += 1)
      expect(await sampler.choose(ask, selectCandidates(row, ask), async () => row)).toBe(1)
  })
})

it('is left to the model where a client of messages says -1', async () => {
  expect(await samplingOf('/v1/messages', { top_p: -1, top_k: -1, temperature: 1 })).toEqual({
    temperature: 1,
  })
})
