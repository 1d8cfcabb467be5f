/** The official SDKs, bundled by somebody else and put into the page, pointed at its origin. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Page } from 'playwright'
import { bundleSdks } from '../support/sdks.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

interface InPage {
  server: import('../../src/index.ts').Server
  sdks: typeof import('../support/sdks-entry.ts')
}

let site: Site
let page: Page

beforeAll(async () => {
  site = await openSite({ pages: { '/sdks.js': await bundleSdks() } })
  page = await site.open()
  await serveIn(page)
  await page.addScriptTag({ url: '/sdks.js' })
})

afterAll(() => site?.close())

describe('openai', () => {
  test('models.list and retrieve', async () => {
    const seen = await page.evaluate(async () => {
      const { server, sdks } = globalThis as unknown as InPage
      const client = new sdks.OpenAI({
        baseURL: server.baseURL,
        apiKey: 'none',
        dangerouslyAllowBrowser: true,
      })
      const ids: string[] = []
      for await (const model of client.models.list()) ids.push(model.id)
      return { ids, one: (await client.models.retrieve('@inorigin/guide')).id }
    })
    expect(seen.ids[0]).toBe('@inorigin/guide')
    expect(new Set(seen.ids).size).toBe(seen.ids.length)
    expect(seen.one).toBe('@inorigin/guide')
  })

  test('create, stream and the stream helper agree', async () => {
    const seen = await page.evaluate(async () => {
      const { server, sdks } = globalThis as unknown as InPage
      const client = new sdks.OpenAI({
        baseURL: server.baseURL,
        apiKey: 'none',
        dangerouslyAllowBrowser: true,
      })
      const request = {
        model: '@inorigin/guide',
        messages: [{ role: 'user' as const, content: 'What is inorigin?' }],
        temperature: 0,
      }
      const plain = await client.chat.completions.create(request)
      let text = ''
      let chunks = 0
      for await (const chunk of await client.chat.completions.create({
        ...request,
        stream: true,
      })) {
        text += chunk.choices[0]?.delta.content ?? ''
        chunks += 1
      }
      const helper = await client.chat.completions.stream(request).finalChatCompletion()
      return {
        plain: plain.choices[0]?.message.content,
        text,
        chunks,
        helper: helper.choices[0]?.message.content,
        requestId: plain._request_id,
      }
    })
    expect(seen.plain).toMatch(/\w/)
    expect(seen.text).toBe(seen.plain)
    expect(seen.helper).toBe(seen.plain)
    // A fast model's words come several at a time.
    expect(seen.chunks).toBeGreaterThan(3)
    expect(seen.requestId).toMatch(/^req_/)
  })

  test('abort ends the stream, and the model is free for the next request', async () => {
    const seen = await page.evaluate(async () => {
      const { server, sdks } = globalThis as unknown as InPage
      const client = new sdks.OpenAI({
        baseURL: server.baseURL,
        apiKey: 'none',
        dangerouslyAllowBrowser: true,
      })
      const messages = [{ role: 'user' as const, content: 'What is inorigin?' }]
      const model = '@inorigin/guide'
      const stream = await client.chat.completions.create({ model, messages, stream: true })
      let chunks = 0
      let hasFinished = false
      for await (const chunk of stream) {
        chunks += 1
        hasFinished ||= chunk.choices[0]?.finish_reason != null
        if (chunks === 3) stream.controller.abort()
      }
      const next = await client.chat.completions.create({
        model,
        messages,
        max_completion_tokens: 1,
      })
      return { chunks, hasFinished, next: next.usage?.completion_tokens }
    })
    expect(seen.chunks).toBeGreaterThanOrEqual(3)
    expect(seen.hasFinished).toBe(false)
    expect(seen.next).toBe(1)
  })

  test('a wrong model is NotFoundError, asked once', async () => {
    const seen = await page.evaluate(async () => {
      const { server, sdks } = globalThis as unknown as InPage
      let requests = 0
      const client = new sdks.OpenAI({
        baseURL: server.baseURL,
        apiKey: 'none',
        dangerouslyAllowBrowser: true,
        fetch: (...given) => {
          requests += 1
          return fetch(...given)
        },
      })
      const messages = [{ role: 'user' as const, content: 'Hi' }]
      const error = await client.chat.completions
        .create({ model: 'gpt-4o', messages })
        .catch((thrown: unknown) => thrown)
      const { status, code } = error as { status: number; code: string }
      return { status, code, notFound: error instanceof sdks.OpenAI.NotFoundError, requests }
    })
    expect(seen).toEqual({ status: 404, code: 'model_not_found', notFound: true, requests: 1 })
  })

  test('works through server.fetch too', async () => {
    const text = await page.evaluate(async () => {
      const { server, sdks } = globalThis as unknown as InPage
      const { baseURL, fetch } = server
      const client = new sdks.OpenAI({
        baseURL,
        fetch,
        apiKey: 'none',
        dangerouslyAllowBrowser: true,
      })
      const messages = [{ role: 'user' as const, content: 'What is inorigin?' }]
      const answer = await client.chat.completions.create({ model: '@inorigin/guide', messages })
      return answer.choices[0]?.message.content
    })
    expect(text).toMatch(/\w/)
  })
})

describe('@anthropic-ai/sdk', () => {
  test('models.list ends', async () => {
    const ids = await page.evaluate(async () => {
      const { server, sdks } = globalThis as unknown as InPage
      const client = new sdks.Anthropic({
        baseURL: server.origin,
        apiKey: 'none',
        dangerouslyAllowBrowser: true,
      })
      const found: string[] = []
      for await (const model of client.models.list()) found.push(model.id)
      return found
    })
    expect(ids[0]).toBe('@inorigin/guide')
    expect(new Set(ids).size).toBe(ids.length)
  })

  test('create, stream and the stream helper agree', async () => {
    const seen = await page.evaluate(async () => {
      const { server, sdks } = globalThis as unknown as InPage
      const client = new sdks.Anthropic({
        baseURL: server.origin,
        apiKey: 'none',
        dangerouslyAllowBrowser: true,
      })
      const request = {
        model: '@inorigin/guide',
        max_tokens: 200,
        messages: [{ role: 'user' as const, content: 'What is inorigin?' }],
      }
      const plain = await client.messages.create(request)
      let text = ''
      for await (const event of await client.messages.create({ ...request, stream: true })) {
        if (event.type === 'content_block_delta' && event.delta.type === 'text_delta')
          text += event.delta.text
      }
      const helper = await client.messages.stream(request).finalMessage()
      const textOf = (message: typeof plain) =>
        message.content.map((b) => (b.type === 'text' ? b.text : '')).join('')
      return {
        plain: textOf(plain),
        text,
        helper: textOf(helper),
        usage: helper.usage.output_tokens,
      }
    })
    expect(seen.plain).toMatch(/\w/)
    expect(seen.text).toBe(seen.plain)
    expect(seen.helper).toBe(seen.plain)
    expect(seen.usage).toBeGreaterThan(5)
  })

  test('an answer goes on from its beginning, as with the other SDK', async () => {
    const seen = await page.evaluate(async () => {
      const { server, sdks } = globalThis as unknown as InPage
      const options = { apiKey: 'none', dangerouslyAllowBrowser: true }
      const anthropic = new sdks.Anthropic({ baseURL: server.origin, ...options })
      const openai = new sdks.OpenAI({ baseURL: server.baseURL, ...options })
      const model = '@inorigin/guide'
      const asked = { role: 'user' as const, content: 'What is inorigin?' }
      const ask = (messages: { role: 'user' | 'assistant'; content: string }[]) =>
        anthropic.messages.create({ model, max_tokens: 200, messages })
      const textOf = ({ content: [block] }: Awaited<ReturnType<typeof ask>>) =>
        block?.type === 'text' ? block.text : ''
      const whole = textOf(await ask([asked]))
      const at = whole.indexOf(' ', whole.length / 2)
      const messages = [asked, { role: 'assistant' as const, content: whole.slice(0, at) }]
      const rest = await ask(messages)
      const counted = await anthropic.messages.countTokens({ model, messages })
      const alone = await anthropic.messages.countTokens({ model, messages: [asked] })
      const chat = {
        model,
        messages,
        temperature: 0,
        continue_final_message: true,
        reasoning_effort: 'low' as const,
      }
      const { data, response } = await openai.chat.completions.create(chat).withResponse()
      const { input_tokens, cache_read_input_tokens, output_tokens } = rest.usage
      return {
        wanted: whole.slice(at),
        rest: textOf(rest),
        chat: data.choices[0]?.message.content,
        ignored: response.headers.get('x-inorigin-ignored'),
        prompt: input_tokens + (cache_read_input_tokens ?? 0),
        counted: counted.input_tokens,
        begun: counted.input_tokens - alone.input_tokens,
        output: output_tokens,
        usage: data.usage,
      }
    })
    expect(seen.wanted.length).toBeGreaterThan(10)
    expect(seen.rest).toBe(seen.wanted)
    expect(seen.chat).toBe(seen.wanted)
    expect(seen.ignored).toBe('reasoning_effort')
    expect([seen.prompt, seen.usage?.prompt_tokens]).toEqual([seen.counted, seen.counted])
    expect(seen.begun).toBeGreaterThan(2)
    expect(seen.usage?.completion_tokens).toBe(seen.output)
    // What was answered just before is still there.
    expect(seen.usage?.prompt_tokens_details?.cached_tokens).toBeGreaterThan(5)
  })

  test('a base URL that ends in /v1 works as well', async () => {
    const reason = await page.evaluate(async () => {
      const { server, sdks } = globalThis as unknown as InPage
      const client = new sdks.Anthropic({
        baseURL: server.baseURL,
        apiKey: 'none',
        dangerouslyAllowBrowser: true,
      })
      const messages = [{ role: 'user' as const, content: 'Hello' }]
      return (await client.messages.create({ model: '@inorigin/guide', max_tokens: 2, messages }))
        .stop_reason
    })
    expect(reason).toBe('max_tokens')
  })

  test('a wrong model is NotFoundError', async () => {
    const seen = await page.evaluate(async () => {
      const { server, sdks } = globalThis as unknown as InPage
      const client = new sdks.Anthropic({
        baseURL: server.origin,
        apiKey: 'none',
        dangerouslyAllowBrowser: true,
      })
      const messages = [{ role: 'user' as const, content: 'Hi' }]
      const error = await client.messages
        .create({ model: 'claude-nothing', max_tokens: 5, messages })
        .catch((thrown: unknown) => thrown)
      return { name: (error as Error).constructor.name, type: (error as { type?: string }).type }
    })
    expect(seen.type).toBe('not_found_error')
    expect(seen.name).toContain('NotFoundError')
  })
})

describe('keys', () => {
  test('a wrong key is 401 in both SDKs, the right one works in either header', async () => {
    const tab = await site.open('/blank.html', await site.browser.newContext())
    await serveIn(tab, { apiKeys: ['right'] })
    await tab.addScriptTag({ url: '/sdks.js' })
    const seen = await tab.evaluate(async () => {
      const { server, sdks } = globalThis as unknown as InPage
      const status = (thrown: unknown) => (thrown as { status: number }).status
      const openai = (apiKey: string) =>
        new sdks.OpenAI({ baseURL: server.baseURL, apiKey, dangerouslyAllowBrowser: true })
      const anthropic = (apiKey: string) =>
        new sdks.Anthropic({ baseURL: server.origin, apiKey, dangerouslyAllowBrowser: true })
      const model = '@inorigin/guide'
      const messages = [{ role: 'user' as const, content: 'Hi' }]
      const headers = { 'content-type': 'application/json' }
      const bad = await fetch('/v1/messages', { method: 'POST', headers, body: '{' })
      return {
        openai: await openai('wrong').chat.completions.create({ model, messages }).catch(status),
        anthropic: await anthropic('wrong')
          .messages.create({ model, messages, max_tokens: 1 })
          .catch(status),
        none: (await fetch('/v1/models')).status,
        badBodyNoKey: bad.status,
        bearer: (await fetch('/v1/models', { headers: { authorization: 'Bearer right' } })).status,
        header: (await fetch('/v1/models', { headers: { 'x-api-key': 'right' } })).status,
        works: (await openai('right').models.list()).data[0]?.id,
        worksToo: (await anthropic('right').models.list()).data[0]?.id,
      }
    })
    expect(seen).toEqual({
      openai: 401,
      anthropic: 401,
      none: 401,
      badBodyNoKey: 401,
      bearer: 200,
      header: 200,
      works: '@inorigin/guide',
      worksToo: '@inorigin/guide',
    })
    await tab.context().close()
  })
})
