/**
 * Markdown of answers in the playground: what hostile answers do not do, and how fast long ones are.
 *
 * @module-tag slow
 */
import type { Page } from 'playwright'
import { expect, inject, test } from 'vitest'
import { HOSTILE_ANSWERS } from '../support/hostile-answers.ts'
import { watchMainThread } from '../support/main-thread.ts'
import { openHistory, openTab, scriptAnswers, usePlayground } from '../support/playground.ts'

/** Milliseconds from which a task of the main thread is a long one. */
const LONG_TASK_MS = 50
/**
 * Number of long tasks that are allowed. Alone there is mostly none: the longest took 28 ms of the CPU for
 * text, and 51 ms for formulas, where the next one took 40 ms. Tests that use the same caches make tasks
 * longer. Work that grows with the answer makes dozens of them.
 */
const MAX_LONG_TASKS = 2
/** One of so many hostile answers arrives as a stream. */
const STREAMED_OF = 10

const open = usePlayground({ isScripted: true })

test(
  `${HOSTILE_ANSWERS.length} kinds of hostile answers load nothing and run nothing`,
  { timeout: 900_000 },
  async () => {
    expect(HOSTILE_ANSWERS.length).toBeGreaterThan(200)
    const { page, ask, faults } = await open()
    const foreign: string[] = []
    const origin = new URL(inject('demo')).origin
    const note = (url: string) => {
      if (!url.startsWith(origin) && /^(?:https?|wss?):/.test(url)) foreign.push(url)
    }
    page.context().on('request', (request) => note(request.url()))
    page.on('framenavigated', (frame) => note(frame.url()))
    page.on('dialog', (dialog) => void faults.push(dialog.message()))
    for (const [at, text] of HOSTILE_ANSWERS.entries()) {
      // The others are shown as a whole, which takes a tenth of the time.
      if (at % STREAMED_OF !== 0) continue
      await scriptAnswers(page, text)
      await ask(`Attack ${at}`)
    }
    const found = await findDangers(page)
    await importAnswers(page, HOSTILE_ANSWERS)
    found.push(...(await findDangers(page)))
    expect(found).toEqual([])
    expect(foreign).toEqual([])
    expect(await page.evaluate(() => Reflect.get(window, 'stolen'))).toBeUndefined()
    expect(faults).toEqual([])
  },
)

/** Shows a stored conversation with these answers. Resolves when all of them are rendered. */
async function importAnswers(page: Page, answers: readonly string[]): Promise<void> {
  const turns = answers.map((text, at) => ({
    id: `turn-${at}`,
    parent: at === 0 ? null : `turn-${at - 1}`,
    created: at,
    changed: at,
    question: `Attack ${at}`,
    images: [],
    answer: { text, model: '@inorigin/guide', url: '/v1/chat/completions', finish: 'stop' },
  }))
  const conversation = { id: 'attacks', title: 'Attacks', created: 0, changed: 0, turns }
  const file = {
    format: 'inorigin-playground',
    version: 1,
    conversations: [{ ...conversation, chosen: {}, deleted: [] }],
  }
  const buffer = Buffer.from(JSON.stringify(file))
  await openHistory(page)
  await page
    .getByLabel('File to import')
    .setInputFiles({ name: 'attacks.json', mimeType: 'application/json', buffer })
  await page.getByText('1 conversation is imported.').waitFor()
  await page.locator('#history').getByRole('button', { name: 'Attacks', exact: true }).click()
  await expect.poll(() => page.locator('.turn > .meta').count()).toBe(answers.length)
  // The last answer is rendered last, and it is no empty one.
  await expect.poll(() => page.locator('.answer').last().innerText()).not.toBe('')
}

/** Returns elements and attributes of the answers that could load or run something. */
function findDangers(page: Page): Promise<string[]> {
  return page.locator('.log').evaluate((log) =>
    [...log.querySelectorAll('.answer *')].flatMap((found) => {
      const { localName, attributes } = found
      const isForm = ['script', 'iframe', 'img', 'svg', 'style', 'link', 'form', 'input', 'object']
      const names = isForm.includes(localName) ? [localName] : []
      for (const { name, value } of attributes) {
        const isAddress = /^(?:href|src|srcset|action|formaction|data|poster|xlink:href)$/.test(
          name,
        )
        const isSafe = name === 'href' && /^(?:https?:\/\/|mailto:)/.test(value)
        if (/^on|^style$|^id$/.test(name) || (isAddress && !isSafe)) names.push(`${name}=${value}`)
      }
      return names
    }),
  )
}

test.each([
  ['text', longAnswer],
  ['formulas', manyFormulas],
])(
  '10,000 tokens of %s at full speed never block the page for long, nor shift what is read',
  async (_what, write) => {
    const { page, ask } = await open()
    // The requests beside the chat show the events as they arrive.
    await openTab(page, 'Requests')
    await scriptAnswers(page, 'Ready. `x` $y$\n\n```js\nlet a\n```')
    await ask('Prepare.')
    // The load of the guide, which answers nothing here, would move the composer.
    await page.evaluate(() => window.inorigin?.models.load('@inorigin/guide'))
    await page.locator('#loading').waitFor({ state: 'hidden' })
    await streamNext(page, write())
    const watched = await watchMainThread(page)
    await ask('Tell me everything.')
    expect(await page.locator('.turn').last().locator('.block').count()).toBeGreaterThan(500)
    const { tasks, shift } = await watched.end()
    expect(tasks.length).toBeGreaterThan(20)
    const long = tasks.filter((milliseconds) => milliseconds >= LONG_TASK_MS)
    expect(long.length, `long tasks: ${long.join(', ')} ms`).toBeLessThanOrEqual(MAX_LONG_TASKS)
    expect(Math.max(...tasks)).toBeLessThan(2 * LONG_TASK_MS)
    expect(shift).toBeLessThan(0.01)
  },
)

/** Answers the next chat with these tokens, a few at a time, without work of a server in the page. */
function streamNext(page: Page, tokens: readonly string[]): Promise<void> {
  const frame = (choice: object) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, finish_reason: null, ...choice }] })}\n\n`
  const events = tokens.map((content) => frame({ delta: { content } }))
  events.push(frame({ delta: {}, finish_reason: 'stop' }), 'data: [DONE]\n\n')
  return page.evaluate((all) => {
    const scripted = window.fetch
    window.fetch = async (input, init) => {
      if (!String(input).endsWith('/chat/completions')) return scripted(input, init)
      const body = new ReadableStream<Uint8Array>({
        pull(controller) {
          const text = all.splice(0, 20).join('')
          if (text === '') controller.close()
          else controller.enqueue(new TextEncoder().encode(text))
        },
      })
      return new Response(body)
    }
  }, events)
}

/** 10,000 tokens of text, lists, tables and code. */
function longAnswer(): string[] {
  const block = [
    ...'A paragraph with **bold words**, some `code` and [a link](https://x.test/). '.split(
      /(?<= )/,
    ),
    '\n\n',
    ...'- one item\n- another item with *emphasis*\n\n'.split(/(?<=\s)/),
    ...'```js\nconst value = call("text") // why\n```\n\n'.split(/(?<=\s)/),
    ...'| a | b |\n|---|---|\n| 1 | 2 |\n\n'.split(/(?<=\s)/),
  ]
  return repeat(block)
}

/** 10,000 tokens of formulas, in lines and in blocks. */
function manyFormulas(): string[] {
  const text =
    'If $x^2 + \\frac{a}{b} = 1$ then\n\n$$\n\\sum_{i=1}^{n} \\sqrt{\\frac{x_i}{i}} + \\int_0^1 f(x) dx\n$$\n\n'
  return repeat(text.match(/[^]{1,4}/g) ?? [])
}

const repeat = (tokens: readonly string[]): string[] =>
  Array.from({ length: 10_000 }, (_, at) => tokens[at % tokens.length] ?? '')
