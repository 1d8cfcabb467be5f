/**
 * GGUF files on every way into a page: from a hub, from a URL, chosen by a user and added by the command
 * line. Then all that other models do.
 */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { promisify } from 'node:util'
import type { Page } from 'playwright'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { CatalogInput, ImportProgress, LoadProgress, Server } from '../../src/index.ts'
import { CLI, CliApp } from '../support/cli-app.ts'
import { CARD, createGgufChat, splitGgufChat } from '../support/gguf-chat.ts'
import { type Hub, openHub } from '../support/hub.ts'
import { CHAT, fetchIn, MESSAGES } from '../support/requests.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

const EVERYDAY = { tags: ['everyday'] }

const COMMIT = 'a'.repeat(40)
const REPOSITORY = 'me/tiny-GGUF'
const FILE = 'Tiny-Chat.Q4_1.gguf'
const [FIRST_PART = ''] = splitGgufChat().keys()

interface InPage {
  server: Server
}

let app: CliApp
let hub: Hub
let site: Site
let page: Page

beforeAll(async () => {
  app = new CliApp()
  const contents = new Map([[FILE, createGgufChat()], ...splitGgufChat()])
  // Another architecture, of which the head is enough to refuse it.
  contents.set('other.gguf', createGgufChat({ 'general.architecture': { text: 'mamba' } }))
  for (const [name, bytes] of contents) app.put(`public/${name}`, bytes)
  const files = Object.fromEntries(
    [...contents.keys()].map((name) => [name, app.path(`public/${name}`)]),
  )
  hub = await openHub({ [REPOSITORY]: { commit: COMMIT, files } })
  site = await openSite({ folders: { '/files': app.path('public') } })
  page = await site.open()
  await serve({
    version: 1,
    entries: [
      { tag: '@me/hub', huggingface: REPOSITORY, file: FILE, host: hub.url },
      { tag: '@me/split', huggingface: REPOSITORY, file: FIRST_PART, host: hub.url },
      { tag: '@me/url', gguf: `/files/${FILE}` },
      { tag: '@me/other', huggingface: REPOSITORY, file: 'other.gguf', host: hub.url },
      { tag: '@me/none', huggingface: REPOSITORY, file: 'none.gguf', host: hub.url },
    ],
  })
})

afterAll(async () => {
  await site?.close()
  await hub?.close()
  app?.remove()
})

const serve = (catalog: CatalogInput | string) => serveIn(page, { device: 'wasm', catalog })

const question = [{ role: 'user', content: 'Say hello.' }]

/** Resolves with the text of an answer in both styles, which are the same. */
async function ask(model: string, max_tokens = 8): Promise<string> {
  const body = { model, messages: question, temperature: 0, max_tokens }
  const [chat, messages] = [await fetchIn(page, CHAT, body), await fetchIn(page, MESSAGES, body)]
  expect([chat.status, messages.status, chat.status === 200 ? '' : chat.text]).toEqual([
    200,
    200,
    '',
  ])
  const text = JSON.parse(chat.text).choices[0].message.content
  expect(JSON.parse(messages.text).content).toEqual([{ type: 'text', text }])
  expect(text).not.toBe('')
  return text
}

const post = async (path: string, body: object) => {
  const { status, text } = await fetchIn(page, path, body)
  expect([status, status === 200 ? '' : text]).toEqual([200, ''])
  return JSON.parse(text)
}

const listed = async (tag: string) => JSON.parse((await fetchIn(page, `/v1/models/${tag}`)).text)

/** Imports a file of the site as one that a user chose. */
const importFile = (name: string) =>
  page.evaluate(
    async ([url, path]) => {
      const { server } = globalThis as unknown as InPage
      const file = new File([await (await fetch(url)).blob()], path)
      const steps: ImportProgress[] = []
      const imported = await server.import(file, { onProgress: (step) => steps.push(step) })
      return { imported, phases: [...new Set(steps.map(({ phase }) => phase))] }
    },
    [`/files/${name}`, name] as const,
  )

test('a file answers from a hub, a URL, the user and the command line', EVERYDAY, async () => {
  const phases = await page.evaluate(async () => {
    const { server } = globalThis as unknown as InPage
    const seen: LoadProgress[] = []
    await server.models.load('@me/hub', { onProgress: (progress) => seen.push(progress) })
    return [...new Set(seen.map(({ phase }) => phase))]
  })
  expect(phases).toEqual(['download', 'compile', 'warm', 'ready'])
  const answer = await ask('@me/hub')
  for (const tag of ['@me/split', '@me/url']) expect(await ask(tag)).toBe(answer)

  const { imported, phases: steps } = await importFile(FILE)
  expect(imported).toMatchObject({ tag: '@me/tiny-chat.q4_1', files: [FILE], complete: true })
  expect(steps).toContain('store')
  expect(await ask(imported.tag)).toBe(answer)

  const run = promisify(execFile)
  const args = ['add', REPOSITORY, '--file', FILE, '--host', hub.url, '--tag', '@me/added']
  const { stdout } = await run(process.execPath, [CLI, ...args, '--public', 'public'], {
    cwd: app.folder,
  })
  expect(stdout).toMatch(/Added the chat model @me\/added: 1 file, .* download from .*tiny-GGUF/)
  const catalog = JSON.parse(app.get('public/inorigin/catalog.json')) as CatalogInput
  expect(catalog.entries).toMatchObject([
    {
      huggingface: REPOSITORY,
      file: FILE,
      revision: COMMIT,
      license: 'tiny-1.0',
      parameters: '0.1M',
    },
  ])
  await page.reload()
  await serve(catalog)
  // The file is stored by its digest, so nothing is downloaded again.
  hub.asked.length = 0
  expect(await ask('@me/added')).toBe(answer)
  expect(hub.asked).toEqual([])
})

describe('a model of a GGUF file', () => {
  const TAG = '@me/added'

  test('is listed with what its file says, and with the memory that it needs', async () => {
    expect(await listed('@me/tiny-chat.q4_1')).toMatchObject({
      display_name: CARD.name,
      license: CARD.license,
      languages: ['en'],
      parameters: CARD.parameters,
      quantization: CARD.quantization,
      max_input_tokens: CARD.contextTokens,
      capabilities: { tools: { supported: true }, structured_outputs: { supported: true } },
    })
    // The card of a repository goes before the file.
    expect(await listed(TAG)).toMatchObject({ display_name: CARD.name, license: 'tiny-1.0' })
    const [state, explanation] = await page.evaluate(async (tag) => {
      const { server } = globalThis as unknown as InPage
      const states = await server.models.list()
      return [states.find((one) => one.tag === tag), await server.explain(tag)] as const
    }, TAG)
    const bytes = createGgufChat().length
    expect(state).toMatchObject({ bytes, status: 'loaded', device: 'wasm' })
    expect(state?.memory).toBeGreaterThan(bytes)
    expect(explanation.reasons.map(({ id }) => id)).toEqual(['q4_1-webgpu', 'q4_1-wasm'])
  })

  test('keeps to schemas, calls tools and has logprobs', async () => {
    const schema = {
      type: 'object',
      properties: { size: { enum: ['small', 'large'] } },
      required: ['size'],
      additionalProperties: false,
    }
    const base = { model: TAG, messages: question, temperature: 0, max_tokens: 64 }
    const format = { type: 'json_schema', json_schema: { name: 'answer', schema, strict: true } }
    const chat = await post(CHAT, { ...base, response_format: format })
    expect(JSON.parse(chat.choices[0].message.content).size).toMatch(/^(small|large)$/)
    const tools = [{ name: 'choose', input_schema: schema }]
    const called = await post(MESSAGES, { ...base, tools, tool_choice: { type: 'any' } })
    expect(called.content.at(-1)).toMatchObject({
      type: 'tool_use',
      name: 'choose',
      input: { size: expect.stringMatching(/^(small|large)$/) },
    })
    const spoken = await post(CHAT, { ...base, max_tokens: 4, logprobs: true, top_logprobs: 2 })
    const [{ content }] = spoken.choices.map(({ logprobs }: { logprobs: object }) => logprobs)
    expect(content[0].top_logprobs[0].logprob).toBe(content[0].logprob)
    expect(content[0].logprob).toBeLessThanOrEqual(0)
  })

  test('reuses prompts, and answers several requests side by side as one by one', async () => {
    const messages = [{ role: 'user', content: 'hello '.repeat(12) }]
    const body = { model: TAG, messages, temperature: 0, max_tokens: 12 }
    const alone = await post(CHAT, body)
    const again = await post(CHAT, body)
    expect(again.usage.prompt_tokens_details.cached_tokens).toBeGreaterThan(10)
    const textOf = ({ choices }: { choices: { message: { content: string } }[] }) =>
      choices[0]?.message.content
    const others = [0, 1, 2].map((index) => ({
      ...body,
      messages: [{ role: 'user', content: `hello ${index}` }],
    }))
    const one = []
    for (const other of others) one.push(textOf(await post(CHAT, other)))
    const all = await Promise.all([body, ...others].map((each) => post(CHAT, each)))
    expect(all.map(textOf)).toEqual([textOf(alone), ...one])
  })

  test('that cannot run is refused before its weights are downloaded', async () => {
    await page.reload()
    await serve({
      version: 1,
      entries: [
        { tag: '@me/other', huggingface: REPOSITORY, file: 'other.gguf', host: hub.url },
        { tag: '@me/none', huggingface: REPOSITORY, file: 'none.gguf', host: hub.url },
        { tag: '@me/lost', gguf: '/files/lost.gguf' },
      ],
    })
    const refusalOf = async (model: string) => {
      const { status, text } = await fetchIn(page, CHAT, { model, messages: question })
      return [status, JSON.parse(text).error.message]
    }
    expect(await refusalOf('@me/other')).toEqual([503, expect.stringMatching(/mamba.*llama/)])
    expect(await refusalOf('@me/none')).toEqual([
      503,
      expect.stringContaining(`${REPOSITORY} has no none.gguf: its GGUF files are ${FILE}`),
    ])
    expect(await refusalOf('@me/lost')).toEqual([503, expect.stringContaining('returned 404')])
    const stored = await page.evaluate(() =>
      (globalThis as unknown as InPage).server.storage.list(),
    )
    expect(stored.map(({ tag }) => tag)).not.toContain('@me/other')
  })
})

/** Path of SmolLM2-135M-Instruct in Q4_1, if it is on this machine. */
const REAL = process.env['INORIGIN_GGUF']

test.runIf(REAL !== undefined && existsSync(REAL))(
  'a real file answers what it says, added by the command line and chosen by the user',
  { tags: ['slow'] },
  async () => {
    const path = REAL ?? ''
    app.put(`public/${basename(path)}`, readFileSync(path))
    app.inorigin('add', path, '--tag', '@me/real', '--public', 'public')
    await page.reload()
    await serve(`${site.url}/files/inorigin/catalog.json`)
    const { imported } = await importFile(basename(path))
    for (const model of ['@me/real', imported.tag]) {
      const messages = [{ role: 'user', content: 'What is the capital of France?' }]
      const body = { model, messages, temperature: 0, max_tokens: 16 }
      const chat = await post(CHAT, body)
      expect(chat.choices[0].message.content).toBe('The capital of France is Paris.')
      const message = await post(MESSAGES, body)
      expect(message.content[0].text).toBe('The capital of France is Paris.')
    }
  },
)
