/**
 * The whole chain with real parts: a page whose device is too small, an upstream implementation, the
 * bridge command, and a page in another browser that answers.
 */
import type { Page } from 'playwright'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { CatalogInput, Server, ServeOptions, TraceEvent } from '../../src/index.ts'
import { checkGeneration } from '../contract/wire.ts'
import {
  answers,
  lend,
  startBridge,
  TOKEN,
  type BridgeCommand,
  type LentPage,
} from '../support/bridge-command.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'
import {
  abortStream,
  beginStream,
  CHAT,
  ENDLESS,
  fetchIn,
  fetchThrough,
  GUIDE,
  MESSAGES,
  streamHas,
} from '../support/requests.ts'

interface InPage extends LentPage {
  serve: (options: ServeOptions) => Promise<Server>
  /** Ends of the requests that the answering page has received: answered, or failed. */
  ends: TraceEvent['type'][]
}

const TAG = '@app/assistant'

let command: BridgeCommand
/** Sites of the page that asks and of the page that answers, in two browsers. */
let near: Site
let far: Site
let asking: Page
let answering: Page

beforeAll(async () => {
  near = await openSite({ gpu: 'none' })
  far = await openSite()
  command = await startBridge('--require-key', '--origin', near.url)
  answering = await openAnswering()
  asking = await openAsking()
})
afterAll(async () => {
  await near?.close()
  await far?.close()
  await command?.end()
})

async function openAnswering(): Promise<Page> {
  const page = await far.open()
  await serveIn(page)
  await lend(page, command.url)
  await page.evaluate(() => {
    const kept = globalThis as unknown as InPage
    kept.ends = []
    void (async () => {
      for await (const { type } of kept.server.trace())
        if (type === 'response' || type === 'failure') kept.ends.push(type)
    })()
  })
  return page
}

async function openAsking(): Promise<Page> {
  const page = await near.open()
  await page.waitForFunction(() => 'serve' in globalThis)
  await page.evaluate(
    async ([catalog, url, token]) => {
      const kept = globalThis as unknown as InPage
      const headers = async () => ({ authorization: `Bearer ${token}` })
      kept.server = await kept.serve({ catalog, upstreams: [{ url, headers }] })
    },
    [createCatalog(), `${command.url}/v1`, TOKEN] as const,
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

/** What an upstream server does not honor, does not report, or says in its own words. */
const LACKS = [
  'biased',
  'an answer that has begun',
  'developers and systems wherever they stand',
  'counts the tokens of the prefix cache',
  'ends at a stop sequence across tokens, of which nothing is seen',
  'what does not fit',
  'arguments that cannot be kept',
]

describe('the contract', () => {
  checkGeneration(
    () => ({ fetch: fetchThrough(asking) }),
    () => ({ model: TAG, contextWindow: 2_048, reasons: true, goesOn: false, lacks: LACKS }),
  )
})

test.each([
  [
    CHAT,
    {
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'x', schema: ENDLESS.output_config.format.schema },
      },
    },
  ],
  [MESSAGES, ENDLESS],
])('an abort in the asking page ends the answer in the other one: %s', async (path, fields) => {
  await beginStream(asking, path, TAG, fields, path)
  await streamHas(asking, path, 'served by upstream')
  await answers(answering, 1)
  await answering.evaluate(() => void ((globalThis as unknown as InPage).ends = []))
  await abortStream(asking, path)
  await answers(answering, 0)
  // An answer that went on to its last token would have been answered.
  await expect
    .poll(() => answering.evaluate(() => (globalThis as unknown as InPage).ends))
    .toEqual(['failure'])
})

test('the error of the far end keeps its status and says where it comes from', async () => {
  await answering.evaluate(() => (globalThis as unknown as InPage).bridge.close())
  const messages = [{ role: 'user', content: 'Hello' }]
  const { status, text } = await fetchIn(asking, CHAT, { model: TAG, messages })
  const { code, message } = JSON.parse(text).error
  expect({ status, code }).toEqual({ status: 503, code: 'upstream_error' })
  expect(message).toContain('No tab is connected')
})
