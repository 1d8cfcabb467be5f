/** An answer of an upstream server through the endpoint, beside a direct `fetch` of that server. */
import type { Page } from 'playwright'
import type { GenerationEvent } from '../../src/types/index.ts'
import { openSite, serveIn } from '../support/site.ts'
import { startFetchServer } from '../support/upstream-server.ts'
import { fetchOf, scriptedHost, TINY } from '../unit/wire/scripted-host.ts'
import { atLeast, median, type Figure } from './figure.ts'

/** Pairs that are counted. The first one warms both sides up. */
const ROUNDS = 9
/** Milliseconds that the server takes for the prompt, its tokens, and the time of each. */
const PROMPT_MS = 200
const TOKENS = 256
const TOKEN_MS = 4
const TAG = '@bench/far'

interface Timing {
  firstMs: number
  totalMs: number
  characters: number
}

/** Compares the time to the first token, and of the whole answer, on both ways to one server. */
export async function measureUpstream(): Promise<Figure[]> {
  const server = await startFetchServer(
    fetchOf(scriptedHost({ overrides: { generate: generatePaced } })),
  )
  const site = await openSite()
  try {
    const page = await site.open()
    const entry = {
      tag: TAG,
      type: 'model' as const,
      name: 'Far',
      maxInputTokens: 4_096,
      maxOutputTokens: TOKENS,
      created: '2026-11-01T00:00:00Z',
      implementations: [
        { id: 'server', engine: 'upstream' as const, url: server.url, model: TINY.tag },
      ],
    }
    await serveIn(page, { catalog: { version: 1, entries: [entry] } })
    const ways = {
      direct: () => time(page, `${server.url}/chat/completions`, TINY.tag),
      endpoint: () => time(page, '/v1/chat/completions', TAG),
    }
    const rates: number[] = []
    const firsts: number[] = []
    const delaysMs: number[] = []
    for (let round = 0; round <= ROUNDS; round += 1) {
      // Who goes first changes, so that a machine that slows down does not favor one of them.
      const isDirectFirst = round % 2 === 0
      const before = isDirectFirst ? await ways.direct() : undefined
      const through = await ways.endpoint()
      const direct = before ?? (await ways.direct())
      if (through.characters !== direct.characters) throw new Error('The answers are not the same.')
      if (round === 0) continue
      rates.push(direct.totalMs / through.totalMs)
      firsts.push(direct.firstMs / through.firstMs)
      delaysMs.push(through.firstMs - direct.firstMs)
    }
    const note = `${median(delaysMs).toFixed(1)} ms later, of a server that takes ${PROMPT_MS} ms`
    return [
      atLeast('upstream_first_token', median(firsts), 0.95, note),
      atLeast('upstream_throughput', median(rates), 0.95, `${ROUNDS} pairs`),
    ]
  } finally {
    await site.close()
    await server.close()
  }
}

/** Writes one token after the other at the times of a server with a steady rate. */
async function generatePaced() {
  async function* events(): AsyncGenerator<GenerationEvent> {
    const began = performance.now()
    yield { type: 'start', promptTokens: 9, cachedTokens: 0 }
    for (let token = 1; token <= TOKENS; token += 1) {
      const waitMs = began + PROMPT_MS + token * TOKEN_MS - performance.now()
      if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs))
      yield { type: 'text', text: ' token' }
    }
    const usage = { promptTokens: 9, cachedTokens: 0, completionTokens: TOKENS, reasoningTokens: 0 }
    yield { type: 'finish', reason: 'stop', stopSequence: null, usage }
  }
  return { ignored: [], events: events() }
}

function time(page: Page, url: string, model: string): Promise<Timing> {
  return page.evaluate(
    async ([address, name]) => {
      const began = performance.now()
      const response = await fetch(address, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          model: name,
          messages: [{ role: 'user', content: 'Hi' }],
          stream: true,
        }),
      })
      let firstMs = 0
      let text = ''
      for (const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader(); ;) {
        const piece = await reader?.read()
        if (!piece || piece.done) break
        text += piece.value
        if (firstMs === 0 && text.includes(' token')) firstMs = performance.now() - began
      }
      const totalMs = performance.now() - began
      return { firstMs, totalMs, characters: text.split(' token').length }
    },
    [url, model] as const,
  )
}
