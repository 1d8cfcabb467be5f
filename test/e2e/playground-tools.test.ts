/** Tools in the playground beyond a first call: approval, the limit of rounds, and the sandbox. */
import type { Page } from 'playwright'
import { expect, inject, test } from 'vitest'
import { findAccessibilityProblems } from '../support/axe.ts'
import {
  bodiesOf,
  chooseStyle,
  expectAnswers,
  openTab,
  overflowOf,
  scriptAnswers,
  send,
  usePlayground,
  type PlaygroundOptions,
} from '../support/playground.ts'
import type { ScriptedWindow } from '../support/scripted-fetch.ts'

const openAt = usePlayground()

/** Opens the playground with tools turned on. */
async function open(settings: object, options: PlaygroundOptions = { isScripted: true }) {
  const localStorage = [
    { name: 'playground:tools', value: JSON.stringify(settings) },
    { name: 'playground:settings', value: '{"effort":"low"}' },
  ]
  const origins = [{ origin: new URL(inject('demo')).origin, localStorage }]
  return openAt(undefined, { ...options, storageState: { cookies: [], origins } })
}

const STYLES = ['Chat', 'Messages'] as const
const CALCULATOR = { enabled: ['calculator'] }

const call = (name: string, args: Record<string, unknown>) => ({ name, arguments: args })

/** Adds answers that call the tools after a text. */
const scriptCalls = (page: Page, ...rounds: ReturnType<typeof call>[][]) =>
  scriptAnswers(
    page,
    ...rounds.map((toolCalls, at) => ({ text: `Round ${at + 1}.`, reasoning: 'Hm.', toolCalls })),
  )

const runButtons = (page: Page) => page.getByRole('button', { name: 'Run', exact: true })

test('the guide calls a tool in the messages style', { tags: ['slow'] }, async () => {
  const code = 'return `${args.minutes} minutes are set`'
  const minutes = { type: 'integer', description: 'Length in minutes' }
  const schema = { type: 'object', properties: { minutes }, required: ['minutes'] }
  const timer = { name: 'start_timer', description: 'Starts a countdown timer', code }
  const own = [{ ...timer, parameters: JSON.stringify(schema) }]
  const { page, faults } = await open({ own, enabled: ['start_timer'], choice: 'required' }, {})
  await chooseStyle(page, 'Messages')
  await send(page, 'Could you set a timer for 25 minutes?')
  const card = page.getByRole('region', { name: 'Call of start_timer' })
  await card.getByRole('button', { name: 'Run' }).click()
  await page.locator('.turn > .meta').waitFor()
  expect(await card.getByLabel('Result').innerText()).toBe('25 minutes are set')
  const shown = (await page.locator('#request').textContent()) ?? ''
  expect(shown).toMatch(/type: 'tool_result',\s+tool_use_id: '/)
  expect(faults).toEqual([])
})

test.each(STYLES)(
  '%s: cards wait for approval, and the next question sends the calls again',
  async (style) => {
    const { page } = await open({ enabled: ['calculator', 'clock'] })
    await chooseStyle(page, style)
    const expression = { expression: '12 * (3 + 4)' }
    await scriptCalls(
      page,
      [call('calculator', expression), call('clock', { time_zone: 'Mars/Base' })],
      [call('calculator', { expression: 7 })],
    )
    await send(page, 'How much, and when?')
    const cards = page.locator('.tool-card')
    await cards.nth(1).waitFor()
    expect(await bodiesOf(page)).toHaveLength(1)
    // The keyboard is enough: the first card has the focus.
    await expect.poll(() => cards.first().evaluate((card) => card.matches(':focus'))).toBe(true)
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await cards.first().getByText('Ran in this page').waitFor()
    expect(await bodiesOf(page)).toHaveLength(1)
    await cards.nth(1).getByRole('button', { name: 'Run' }).click()
    await page.locator('.turn > .meta').waitFor()
    expect(await cards.nth(0).innerText()).toContain('84')
    expect(await cards.nth(1).innerText()).toContain('Unknown time zone "Mars/Base"')
    expect(await cards.nth(2).innerText()).toContain('"expression": ')
    await expectAnswers(page, 'Round 1.', 'Round 2.', 'Answer 3.')

    await scriptCalls(page, [call('clock', {})])
    await send(page, 'Again?')
    await cards.nth(3).getByRole('button', { name: 'Decline' }).click()
    await page.locator('.turn > .meta').nth(1).waitFor()
    const sent = JSON.stringify((await bodiesOf(page)).at(-1))
    for (const text of ['84', 'Mars/Base', 'Answer 3.', 'Again?', 'The user declined this call.'])
      expect(sent).toContain(text)
  },
)

/** Calls a tool in the next answer, whether the request offers it or not, as models of other servers may. */
const callNext = (page: Page, tool: string) =>
  page.evaluate((name) => {
    const scripted = window.fetch
    window.fetch = async (input, init) => {
      if (!String(input).endsWith('/chat/completions')) return scripted(input, init)
      window.fetch = scripted
      ;(window as unknown as ScriptedWindow).bodies.push(JSON.parse(String(init?.body)))
      const tool_calls = [{ index: 0, id: 'call_1', function: { name, arguments: '{}' } }]
      const delta = { content: `I call ${name}.`, tool_calls }
      const choices = [{ index: 0, delta, finish_reason: 'tool_calls' }]
      return new Response(`data: ${JSON.stringify({ choices })}\n\ndata: [DONE]\n\n`)
    }
  }, tool)

test('the loop ends after the limit of rounds, and stops with the answer', async () => {
  const { page } = await open({ ...CALCULATOR, maxRounds: 2 })
  const sum = [call('calculator', { expression: '1 + 1' })]
  await callNext(page, 'nothing')
  await scriptCalls(page, sum)
  await send(page, 'Go on.')
  const run = runButtons(page)
  await run.waitFor()
  expect(await page.locator('.tool-card').first().innerText()).toContain(
    'There is no tool "nothing".',
  )
  await callNext(page, 'calculator')
  await run.click()
  await page.getByText('The model still calls tools after 2 rounds').waitFor()
  await page.locator('.turn > .meta').waitFor()
  const bodies = await bodiesOf(page)
  expect(bodies.map((body) => body['tool_choice'])).toEqual(['auto', 'auto', 'none'])
  const first = ['I call nothing.', 'Round 1.', 'I call calculator.']
  await expectAnswers(page, ...first)

  await scriptCalls(page, sum)
  await send(page, 'Once more.')
  await run.waitFor()
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.getByText('Stopped', { exact: true }).waitFor()
  await expect.poll(() => run.count()).toBe(0)
  expect(await bodiesOf(page)).toHaveLength(4)

  // A stopped turn keeps its calls, and shows nothing twice.
  await page.locator('.turn > .meta', { hasText: 'stopped' }).waitFor()
  await expectAnswers(page, ...first, 'Round 1.')
  expect(await page.locator('.turn').last().locator('.reasoning').count()).toBe(1)
  await page.reload()
  const kept = page.locator('.turn').last()
  await kept.getByText('The user stopped this call.').waitFor()
  await kept.locator('.meta').waitFor()
  await expect.poll(() => kept.locator('.answer').allInnerTexts()).toEqual(['Round 1.'])
})

test.each(STYLES)(
  '%s: an answer after calls continues with them, and keeps them',
  { tags: ['slow'] },
  async (style) => {
    const { page } = await open(CALCULATOR)
    await chooseStyle(page, style)
    await openTab(page, 'Settings')
    await page.getByLabel('Max tokens').fill('2')
    await scriptCalls(page, [call('calculator', { expression: '6 * 7' })])
    await scriptAnswers(page, 'It is surely', ' surely 42.')
    await send(page, 'How much?')
    await runButtons(page).click()
    await page.getByRole('button', { name: 'Continue' }).click()
    await expect.poll(async () => (await bodiesOf(page)).length).toBe(3)
    await expectAnswers(page, 'Round 1.', 'It is surely 42.')
    const [, second, third] = (await bodiesOf(page)).map(({ messages }) => messages as object[])
    expect(third?.slice(0, -1)).toEqual(second)
    expect(third?.at(-1)).toMatchObject({ role: 'assistant', content: 'It is' })
    await page.locator('.turn > .meta').waitFor()
    await page.reload()
    await page.locator('.tool-card', { hasText: '42' }).waitFor()
  },
)

test(
  'code runs without the page, its origin and a network, and ends',
  { tags: ['slow'] },
  async () => {
    const { page } = await open({ enabled: ['javascript'] })
    const requests: string[] = []
    page.on('request', (request) => requests.push(request.url()))

    /** Runs code as the tool `javascript` does, and returns what its card shows. */
    async function runCode(code: string): Promise<string> {
      await scriptCalls(page, [call('javascript', { code })])
      const ended = page.locator('.turn > .meta')
      const count = await ended.count()
      await send(page, 'Run it.')
      await runButtons(page).click()
      await ended.nth(count).waitFor()
      return page.locator('.tool-card').last().getByLabel('Result').innerText()
    }

    expect(await runCode('[1, 2, 3].map((x) => x * 2)')).toBe('[2,4,6]')
    expect(await runCode('const x = await Promise.resolve(6)\nreturn x * 7')).toBe('42')
    expect(await runCode('null.x')).toMatch(/TypeError/)
    expect(await runCode('self.origin + " " + typeof document')).toBe('null undefined')
    const outside = `https://example.com/${'x'.repeat(8)}`
    const tries = [
      `await fetch('${inject('demo')}').then(() => 'reached')`,
      `await fetch('${outside}').then(() => 'reached')`,
      `importScripts('${outside}')`,
      `await new Promise((resolve, reject) => Object.assign(new WebSocket('wss://example.com'), { onopen: resolve, onerror: () => reject(new Error('blocked')) }))`,
      `await new Promise((resolve, reject) => Object.assign(indexedDB.open('x'), { onsuccess: () => resolve('reached'), onerror: () => reject(new Error('blocked')) }))`,
      `await caches.keys()`,
    ]
    for (const code of tries) expect(await runCode(code), code).toMatch(/Error/)
    expect(requests.filter((url) => url.includes('example.com'))).toEqual([])

    const workers = page.workers().length
    expect(await runCode('for (;;) {}')).toBe('The code did not end within 5 s.')
    await expect.poll(() => page.locator('iframe').count()).toBe(0)
    await expect.poll(() => page.workers().length).toBeLessThanOrEqual(workers)

    // The document of the sandbox runs nothing in a tab of its own.
    const tab = await page.context().newPage()
    await tab.goto(`${inject('demo')}sandbox.html`)
    const answered = await tab.evaluate(
      () =>
        new Promise((resolve) => {
          addEventListener('message', ({ data }) => {
            if (data !== 'end' && !('code' in data)) resolve(data)
            if (data === 'end') resolve('silent')
          })
          postMessage({ code: '1 + 1', args: {} }, '*')
          postMessage('end', '*')
        }),
    )
    expect(answered).toBe('silent')
    expect(tab.workers()).toEqual([])
  },
)

test(
  'read_page reads text of this site only, and the dialog fits a phone',
  { tags: ['slow'] },
  async () => {
    const viewport = { width: 390, height: 844 }
    const { page } = await open({ enabled: ['read_page'] }, { isScripted: true, viewport })
    const paths = ['llms.txt', 'https://example.com/', 'favicon.ico']
    await scriptCalls(
      page,
      paths.map((path) => call('read_page', { path })),
    )
    await send(page, 'Read.')
    const run = runButtons(page)
    for (const left of [3, 2, 1]) {
      await expect.poll(() => run.count()).toBe(left)
      await run.first().click()
    }
    await page.locator('.turn > .meta').waitFor()
    const results = await page.locator('.tool-card').getByLabel('Result').allInnerTexts()
    expect(results[0]).toMatch(/^# inorigin/)
    expect(results[0]?.length).toBeLessThan(8_100)
    expect(results[1]).toMatch(/not a path of this site/)
    expect(results[2]).toMatch(/favicon\.ico failed with status 404/)
    await page.getByRole('button', { name: 'Tools: 1' }).click()
    await page.getByText('New tool').click()
    expect(await overflowOf(page)).toBe(0)
    expect(await findAccessibilityProblems(page)).toEqual([])
  },
)
