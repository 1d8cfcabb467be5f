/**
 * The contract of the endpoints with the official SDKs, from Node.js. The checks are those of
 * `docs/conformance.md`, which run in a page.
 */
import { describe, expect, test } from 'vitest'
import type { Kind, Settings } from '../conformance/client.ts'
import { anthropic1 } from '../conformance/clients/anthropic.ts'
import { openaiChat } from '../conformance/clients/openai-chat.ts'
import { openaiResponses } from '../conformance/clients/openai-responses.ts'
import { judgeExchanges } from '../conformance/exchanges.ts'
import { FEATURES, type Feature } from '../conformance/features.ts'
import { type Check, checksOf, type Tokens } from '../conformance/suite.ts'
import { createTap, type Tap } from '../conformance/tap.ts'

/** A server whose models pass the checks, and the `fetch` that reaches it. */
export interface ClientEndpoint extends Settings {
  fetch: typeof fetch
  /** Tokens by which the model is driven. */
  tokens: Tokens
}

const NO_TOKENS: Tokens = { end: [], braces: [], thoughtEnd: 0, callStart: 0 }
const NOBODY: Settings = {
  origin: 'http://localhost',
  baseURL: 'http://localhost/v1',
  apiKey: 'none',
  model: 'none',
  embedder: 'none',
  seer: { model: 'none', question: '', images: [], tokens: 0 },
}

/** A client without the type of its messages, which are its own affair. */
const clientOf = <Own>(name: string, kind: Kind<Own>) => ({
  name,
  open: (settings: Settings, tokens: Tokens, drive: Tap['drive']) =>
    new Map(Object.entries(checksOf(kind, settings, drive, tokens)) as [Feature, Check][]),
})

const CLIENTS = [
  clientOf('the OpenAI SDK, chat completions', openaiChat),
  clientOf('the OpenAI SDK, responses', openaiResponses),
  clientOf('the Anthropic SDK', anthropic1),
]

/** Registers the tests. `lacks` are features that the server does not have. */
export function checkClients(endpoint: () => ClientEndpoint, lacks: readonly Feature[] = []): void {
  describe.each(CLIENTS)('$name', ({ open }) => {
    const features = [...open(NOBODY, NO_TOKENS, () => undefined).keys()]
    const cases = features.filter((feature) => !lacks.includes(feature))
    test.each(cases.map((feature) => ({ feature, title: FEATURES[feature] })))(
      '$title',
      async ({ feature }) => {
        const { tokens, ...settings } = endpoint()
        const tap = createTap(settings.fetch)
        const checks = open({ ...settings, fetch: tap.fetch }, tokens, tap.drive)
        const refusal = await checks.get(feature)?.()
        const exchanges = await tap.settled()
        expect(exchanges).not.toEqual([])
        judgeExchanges(feature, refusal === undefined ? 'pass' : 'refused', exchanges)
      },
    )
  })
}
