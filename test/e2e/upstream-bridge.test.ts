/**
 * The whole chain with real parts: a page whose device is too small, an upstream implementation, the
 * bridge command, and a page in another browser that answers.
 */
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import type { Page } from 'playwright'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Bridge, CatalogInput, Server, ServeOptions, TraceEvent } from '../../src/index.ts'
import { startBridge, TOKEN, type BridgeCommand } from '../support/bridge-command.ts'
import { CHAT, MESSAGES, type Answered, type Clients } from '../support/chain/requests.ts'
import { bundleScript } from '../support/sdks.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'
import { ENDLESS } from '../support/streamed.ts'

interface InPage {
  serve: (options: ServeOptions) => Promise<Server>
  server: Server
  bridge: Bridge
  chain: typeof import('../support/chain/entry.ts')
  clients: Clients
  abort: AbortController
  /** Ends of the requests that the answering page has received: answered, or failed. */
  ends: TraceEvent['type'][]
}

const TAG = '@app/assistant'
const GUIDE = '@inorigin/guide'

let command: BridgeCommand
/** Sites of the page that asks and of the page that answers, in two browsers. */
let near: Site
let far: Site
let asking: Page
let answering: Page
/** Clients of the bridge in Node, without the asking page. */
let direct: Clients

beforeAll(async () => {
  const script = await bundleScript('./chain/entry.ts', 'chain')
  near = await openSite({ gpu: 'none', pages: { '/chain.js': script } })
  far = await openSite()
  command = await startBridge('--require-key', '--origin', near.url)
  answering = await openAnswering()
  asking = await openAsking()
  const given = { apiKey: TOKEN, maxRetries: 0 }
  direct = {
    openai: new OpenAI({ ...given, baseURL: `${command.url}/v1` }),
    anthropic: new Anthropic({ ...given, baseURL: command.url }),
    model: GUIDE,
  }
})
afterAll(async () => {
  await near?.close()
  await far?.close()
  await command?.end()
})

async function openAnswering(): Promise<Page> {
  const page = await far.open()
  await serveIn(page)
  await page.evaluate(
    async ([url, token]) => {
      const kept = globalThis as unknown as InPage
      kept.bridge = await kept.server.bridge(url, { token })
      kept.ends = []
      void (async () => {
        for await (const { type } of kept.server.trace())
          if (type === 'response' || type === 'failure') kept.ends.push(type)
      })()
    },
    [command.url, TOKEN] as const,
  )
  return page
}

async function openAsking(): Promise<Page> {
  const page = await near.open()
  await page.waitForFunction(() => 'serve' in globalThis)
  await page.addScriptTag({ url: '/chain.js' })
  await page.evaluate(
    async ([catalog, url, token, tag]) => {
      const kept = globalThis as unknown as InPage
      const headers = async () => ({ authorization: `Bearer ${token}` })
      kept.server = await kept.serve({ catalog, upstreams: [{ url, headers }] })
      kept.clients = kept.chain.createClients(kept.server, tag)
    },
    [createCatalog(), `${command.url}/v1`, TOKEN, TAG] as const,
  )
  return page
}

/** A model for a GPU, or for more memory than WebAssembly has. Its files do not exist. */
function createCatalog(): CatalogInput {
  const file = (name: string, type: 'onnx' | 'tokenizer' | 'config') => ({
    type,
    name,
    url: `/large/${name}`,
    bytes: 1_000,
    sha256: '0'.repeat(64),
  })
  const resources = [
    file('config.json', 'config'),
    file('tokenizer.json', 'tokenizer'),
    file('onnx/model.onnx', 'onnx'),
  ]
  return {
    version: 1,
    entries: [
      {
        tag: TAG,
        type: 'model',
        name: 'Assistant',
        maxInputTokens: 2_048,
        maxOutputTokens: 1_200,
        created: '2026-11-01T00:00:00Z',
        capabilities: { tools: true, thinking: true, structuredOutputs: true },
        implementations: [
          { id: 'gpu', engine: 'onnx', device: 'webgpu', resources },
          {
            id: 'cpu',
            engine: 'onnx',
            device: 'wasm',
            resources,
            requires: { memory: 6 * 2 ** 30 },
          },
          { id: 'server', engine: 'upstream', url: `${command.url}/v1`, model: GUIDE },
        ],
      },
    ],
  }
}

/** Runs a request in the asking page. */
const askInPage = <Style extends 'CHAT' | 'MESSAGES'>(style: Style, name: keyof typeof CHAT) =>
  asking.evaluate(
    ([table, key]) => {
      const { chain, clients } = globalThis as unknown as InPage
      return chain[table][key](clients)
    },
    [style, name] as const,
  )

/** Resolves when the answering page has that many requests. */
const answers = (count: number) =>
  answering.waitForFunction(
    (expected) => (globalThis as unknown as InPage).bridge.state.requests === expected,
    count,
  )

test('the asking page has no device for its model and says that the server answers', async () => {
  const explained = await asking.evaluate(
    (tag) => (globalThis as unknown as InPage).server.explain(tag),
    TAG,
  )
  expect(explained).toMatchObject({
    chosen: 'server',
    reasons: [
      { id: 'gpu', chosen: false, why: expect.stringContaining('no WebGPU') },
      { id: 'cpu', chosen: false, why: expect.stringContaining('6 GiB of memory') },
      { id: 'server', device: 'upstream', chosen: true },
    ],
  })
})

describe.each([
  ['chat completions with the SDK of OpenAI', 'CHAT', CHAT],
  ['messages with the SDK of Anthropic', 'MESSAGES', MESSAGES],
] as const)('%s', (_title, style, requests) => {
  /** Asks in the page and, without the page, at the bridge. Both answers must be the same. */
  async function ask(name: keyof typeof CHAT): Promise<Answered> {
    const seen = await askInPage(style, name)
    expect(seen).toEqual(await requests[name](direct))
    return seen
  }

  test('text and a stream', async () => {
    const text = await ask('text')
    expect(text.text).toMatch(/\w{3}/)
    expect(text.outputTokens).toBeGreaterThan(3)
    expect(await ask('stream')).toEqual(text)
  })

  test('a tool call', async () => {
    const { call, finish } = await ask('tool')
    expect(finish).toMatch(/^tool_(calls|use)$/)
    expect(call).toEqual({
      name: 'get_weather',
      input: { city: expect.any(String), unit: expect.stringMatching(/^(celsius|fahrenheit)$/) },
    })
  })

  test('JSON of a schema', async () => {
    const { text } = await ask('schema')
    expect(JSON.parse(text)).toEqual({ name: expect.any(String), age: expect.any(Number) })
  })

  test('reasoning', async () => {
    const { reasoning, text } = await ask('reasoning')
    expect(reasoning).toMatch(/\d/)
    expect(text).toMatch(/\w/)
    expect(text).not.toContain('think>')
  })
})

test.each([
  [
    '/v1/chat/completions',
    {
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'x', schema: ENDLESS.output_config.format.schema },
      },
    },
  ],
  ['/v1/messages', ENDLESS],
])('an abort in the asking page ends the answer in the other one: %s', async (path, fields) => {
  const body = {
    model: TAG,
    max_tokens: 1_000,
    stream: true,
    messages: [{ role: 'user', content: 'Tell me all about it' }],
    ...fields,
  }
  const servedBy = await asking.evaluate(
    async ([url, json]) => {
      const kept = globalThis as unknown as InPage
      kept.abort = new AbortController()
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(json),
        signal: kept.abort.signal,
      })
      await response.body?.getReader().read()
      return response.headers.get('x-inorigin-served-by')
    },
    [path, body] as const,
  )
  expect(servedBy).toBe('upstream')
  await answers(1)
  await answering.evaluate(() => void ((globalThis as unknown as InPage).ends = []))
  await asking.evaluate(() => (globalThis as unknown as InPage).abort.abort())
  await answers(0)
  // An answer that went on to its last token would have been answered.
  await expect
    .poll(() => answering.evaluate(() => (globalThis as unknown as InPage).ends))
    .toEqual(['failure'])
})

test('the error of the far end keeps its status and says where it comes from', async () => {
  await answering.evaluate(() => (globalThis as unknown as InPage).bridge.close())
  const failed = await asking.evaluate(async () => {
    const { chain, clients } = globalThis as unknown as InPage
    return chain.CHAT.text(clients).catch(({ status, code, message }) => ({
      status,
      code,
      message: String(message),
    }))
  })
  expect(failed).toMatchObject({ status: 503, code: 'upstream_error' })
  expect((failed as { message: string }).message).toContain('No tab is connected')
})
