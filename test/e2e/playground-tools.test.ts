/** Tools in the playground: their editor, the loop of calls, approval, and the sandbox. */
import type { Page } from 'playwright'
import { expect, inject, test } from 'vitest'
import { findAccessibilityProblems } from '../support/axe.ts'
import { usePlayground, type PlaygroundOptions } from '../support/playground.ts'

const openAt = usePlayground()
const open = (options?: PlaygroundOptions) => openAt(undefined, options)

/** Turns tools on before the page starts. */
const withSettings = (settings: object) => ({
  storageState: {
    cookies: [],
    origins: [
      {
        origin: new URL(inject('demo')).origin,
        localStorage: [{ name: 'playground:tools', value: JSON.stringify(settings) }],
      },
    ],
  },
})

/**
 * Answers the chats of both styles with the calls in `window.script`, one list for each request, and
 * then with words, which end for the reason `window.finish`. It records the bodies in `window.bodies`.
 */
function scriptedCalls(): void {
  const real = window.fetch
  const bodies: { tool_choice?: unknown }[] = []
  const script: [name: string, args: object][][] = []
  Object.assign(window, { bodies, script })
  const frames = (list: object[]) =>
    list.map((data) => `event: ${Reflect.get(data, 'type')}\ndata: ${JSON.stringify(data)}\n\n`)
  const chunks = (list: object[]) => list.map((data) => `data: ${JSON.stringify(data)}\n\n`)
  window.fetch = async (input, init) => {
    const isChat = String(input).endsWith('/chat/completions')
    if (!isChat && !String(input).endsWith('/messages')) return real(input, init)
    const body = JSON.parse(String(init?.body)) as { tool_choice?: unknown }
    const calls = script[bodies.length] ?? []
    bodies.push(body)
    const text = `Answer ${bodies.length}.`
    const finish = calls.length > 0 ? 'tool_calls' : Reflect.get(window, 'finish')
    if (isChat) {
      const tool_calls = calls.map(([name, args], index) => ({
        index,
        id: `call_${bodies.length}_${index}`,
        function: { name, arguments: JSON.stringify(args) },
      }))
      const called = { reasoning_content: 'Hm.', tool_calls }
      const delta = { content: text, ...(calls.length > 0 && called) }
      const whole = chunks([{ choices: [{ index: 0, delta, finish_reason: finish ?? 'stop' }] }])
      return new Response(`${whole.join('')}data: [DONE]\n\n`)
    }
    const blocks = calls.flatMap(([name, args], at) => {
      const id = `toolu_${bodies.length}_${at}`
      const json = { type: 'input_json_delta', partial_json: JSON.stringify(args) }
      return [
        {
          type: 'content_block_start',
          index: at + 1,
          content_block: { type: 'tool_use', id, name },
        },
        { type: 'content_block_delta', index: at + 1, delta: json },
      ]
    })
    const said = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }
    const usage = { output_tokens: 1 }
    const stop_reason = finish === 'length' ? 'max_tokens' : 'end_turn'
    const ended = [
      { type: 'message_delta', delta: { stop_reason }, usage },
      { type: 'message_stop' },
    ]
    return new Response(frames([said, ...blocks, ...ended]).join(''))
  }
}

const setScript = (page: Page, script: [name: string, args: object][][]) =>
  page.evaluate((calls) => void Reflect.get(window, 'script').push(...calls), script)

const bodiesOf = (page: Page) =>
  page.evaluate(() => Reflect.get(window, 'bodies') as Record<string, unknown>[])

async function send(page: Page, question: string): Promise<void> {
  await page.getByLabel('Your question').fill(question)
  await page.keyboard.press('Enter')
}

const CALCULATOR = { enabled: ['calculator'] }

test('a tool of the user is written, tried, called by the guide, and answered', async () => {
  const { page, faults } = await open()
  await page.getByRole('button', { name: 'Tools: none' }).click()
  const dialog = page.getByRole('dialog', { name: 'Tools' })
  await dialog.getByText('New tool').click()
  await dialog.getByLabel('Name').fill('get current weather')
  await dialog.getByText('A name has 1 to 64 letters').waitFor()
  await dialog.getByLabel('Name').fill('get_current_weather')
  await dialog.getByLabel('Description for the model').fill('Get the current weather in a location')
  const schema = dialog.getByLabel('Parameters, as JSON Schema')
  await schema.fill('{"type": "object", "properties": {"location": {"type": "text"}}}')
  await dialog.getByText('This is not a JSON Schema').waitFor()
  const location = { type: 'string', description: 'The city' }
  const parameters = { type: 'object', properties: { location }, required: ['location'] }
  await schema.fill(JSON.stringify(parameters))
  await dialog
    .getByLabel('JavaScript with the variable args')
    .fill('console.log(args.location)\nreturn { degrees: 12 }')
  await dialog.getByLabel('Arguments to try it with').fill('{"location": 3}')
  await dialog.getByText('"location": ').waitFor()
  await dialog.getByLabel('Arguments to try it with').fill('{"location": "Oslo"}')
  await dialog.getByRole('button', { name: 'Try it' }).click()
  await dialog.getByText('Oslo\n{"degrees":12}').waitFor()
  expect(await findAccessibilityProblems(page)).toEqual([])
  await dialog.getByRole('button', { name: 'Save' }).click()
  const box = dialog.getByRole('checkbox', { name: 'get_current_weather' })
  expect(await box.isChecked()).toBe(true)
  await dialog.getByLabel('First request').selectOption('must call a tool')
  await dialog.getByRole('button', { name: 'Close' }).click()

  await send(page, "What's it like outside in Lisbon?")
  const card = page.getByRole('region', { name: 'Call of get_current_weather' })
  await card.getByText('It waits for you').waitFor()
  expect(await card.getByLabel('Arguments').innerText()).toContain('Lisbon')
  expect(await findAccessibilityProblems(page)).toEqual([])
  await card.getByRole('button', { name: 'Run' }).click()
  await page.locator('.turn > .meta').waitFor()
  expect(await card.getByLabel('Result').innerText()).toBe('Lisbon\n{"degrees":12}')
  expect(await page.locator('.answer').last().innerText()).not.toBe('')
  const code = (await page.locator('#request').textContent()) ?? ''
  expect(code).toMatch(/role: 'tool',\s+tool_call_id: 'call_/)
  expect(faults).toEqual([])
})

test('the guide calls a tool in the messages style', { tags: ['slow'] }, async () => {
  const code = 'return `${args.minutes} minutes are set`'
  const minutes = { type: 'integer', description: 'Length in minutes' }
  const schema = { type: 'object', properties: { minutes }, required: ['minutes'] }
  const timer = { name: 'start_timer', description: 'Starts a countdown timer', code }
  const own = [{ ...timer, parameters: JSON.stringify(schema) }]
  const settings = { own, enabled: ['start_timer'], choice: 'required' }
  const { page, faults } = await open(withSettings(settings))
  await page.getByLabel('/v1/messages').check()
  await send(page, 'Could you set a timer for 25 minutes?')
  const card = page.getByRole('region', { name: 'Call of start_timer' })
  await card.getByRole('button', { name: 'Run' }).click()
  await page.locator('.turn > .meta').waitFor()
  expect(await card.getByLabel('Result').innerText()).toBe('25 minutes are set')
  const shown = (await page.locator('#request').textContent()) ?? ''
  expect(shown).toMatch(/type: 'tool_result',\s+tool_use_id: '/)
  expect(faults).toEqual([])
})

test.each(['/v1/chat/completions', '/v1/messages'])(
  '%s: cards wait for approval, and the next question sends the calls again',
  async (style) => {
    const settings = { enabled: ['calculator', 'clock'] }
    const { page } = await open({ before: scriptedCalls, ...withSettings(settings) })
    await page.getByLabel(style).check()
    await setScript(page, [
      [
        ['calculator', { expression: '12 * (3 + 4)' }],
        ['clock', { time_zone: 'Mars/Base' }],
      ],
      [['nothing', {}]],
    ])
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
    expect(await cards.nth(2).innerText()).toContain('There is no tool "nothing".')
    expect(await page.locator('.answer').allInnerTexts()).toEqual([
      'Answer 1.',
      'Answer 2.',
      'Answer 3.',
    ])

    await setScript(page, [[], [['clock', {}]]])
    await send(page, 'Again?')
    await cards.nth(3).getByRole('button', { name: 'Decline' }).click()
    await page.locator('.turn > .meta').nth(1).waitFor()
    const bodies = await bodiesOf(page)
    const sent = JSON.stringify(bodies.at(-1))
    for (const text of ['84', 'Mars/Base', 'Answer 3.', 'Again?', 'The user declined this call.'])
      expect(sent).toContain(text)
  },
)

test(
  'the loop ends after the limit of rounds, and stops with the answer',
  { tags: ['slow'] },
  async () => {
    const settings = { ...CALCULATOR, maxRounds: 2 }
    const { page } = await open({ before: scriptedCalls, ...withSettings(settings) })
    const call: [string, object] = ['calculator', { expression: '1 + 1' }]
    await setScript(page, [[call], [call], [call], [call]])
    await send(page, 'Go on.')
    const run = page.getByRole('button', { name: 'Run', exact: true })
    await run.click()
    await run.nth(0).click()
    await page.getByText('The model still calls tools after 2 rounds').waitFor()
    await page.locator('.turn > .meta').waitFor()
    const bodies = await bodiesOf(page)
    expect(bodies.map((body) => body['tool_choice'])).toEqual(['auto', 'auto', 'none'])
    const answers = page.locator('.answer')
    await expect
      .poll(() => answers.allInnerTexts())
      .toEqual(['Answer 1.', 'Answer 2.', 'Answer 3.'])

    await send(page, 'Once more.')
    await run.waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByText('Stopped', { exact: true }).waitFor()
    await expect.poll(() => run.count()).toBe(0)
    expect(await bodiesOf(page)).toHaveLength(4)

    // A stopped turn keeps its calls, and shows nothing twice.
    await page.locator('.turn > .meta', { hasText: 'stopped' }).waitFor()
    await expect.poll(async () => (await answers.allInnerTexts()).slice(3)).toEqual(['Answer 4.'])
    expect(await page.locator('.turn').last().locator('.reasoning').count()).toBe(1)
    await page.reload()
    const kept = page.locator('.turn').last()
    await kept.getByText('The user stopped this call.').waitFor()
    await kept.locator('.meta').waitFor()
    await expect.poll(() => kept.locator('.answer').allInnerTexts()).toEqual(['Answer 4.'])
  },
)

test.each(['/v1/chat/completions', '/v1/messages'])(
  '%s: an answer after calls continues with them, and keeps them',
  { tags: ['slow'] },
  async (style) => {
    const { page } = await open({ before: scriptedCalls, ...withSettings(CALCULATOR) })
    await page.getByLabel(style).check()
    await setScript(page, [[['calculator', { expression: '6 * 7' }]]])
    await page.evaluate(() => void Reflect.set(window, 'finish', 'length'))
    await send(page, 'How much?')
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    await page.getByRole('button', { name: 'Continue' }).click()
    await expect.poll(async () => (await bodiesOf(page)).length).toBe(3)
    await expect
      .poll(() => page.locator('.answer').allInnerTexts())
      .toEqual(['Answer 1.', 'Answer 2.Answer 3.'])
    const [, second, third] = (await bodiesOf(page)).map(({ messages }) => messages as object[])
    expect(third?.slice(0, -1)).toEqual(second)
    expect(third?.at(-1)).toMatchObject({ role: 'assistant', content: 'Answer 2.' })
    await page.locator('.turn > .meta').waitFor()
    await page.reload()
    await page.locator('.tool-card', { hasText: '42' }).waitFor()
  },
)

/** Runs code as the tool `javascript` does, and returns what its card shows. */
async function runCode(page: Page, code: string): Promise<string> {
  await page.evaluate(() => (Reflect.get(window, 'bodies').length = 0))
  await page.evaluate(() => (Reflect.get(window, 'script').length = 0))
  await setScript(page, [[['javascript', { code }]]])
  const ended = page.locator('.turn > .meta')
  const count = await ended.count()
  await send(page, 'Run it.')
  await page.getByRole('button', { name: 'Run', exact: true }).click()
  await ended.nth(count).waitFor()
  return page.locator('.tool-card').last().getByLabel('Result').innerText()
}

test(
  'code runs without the page, its origin and a network, and ends',
  { tags: ['slow'] },
  async () => {
    const settings = { enabled: ['javascript'] }
    const { page } = await open({ before: scriptedCalls, ...withSettings(settings) })
    const requests: string[] = []
    page.on('request', (request) => requests.push(request.url()))
    expect(await runCode(page, '[1, 2, 3].map((x) => x * 2)')).toBe('[2,4,6]')
    expect(await runCode(page, 'const x = await Promise.resolve(6)\nreturn x * 7')).toBe('42')
    expect(await runCode(page, 'null.x')).toMatch(/TypeError/)
    expect(await runCode(page, 'self.origin + " " + typeof document')).toBe('null undefined')
    const outside = `https://example.com/${'x'.repeat(8)}`
    const tries = [
      `await fetch('${inject('demo')}').then(() => 'reached')`,
      `await fetch('${outside}').then(() => 'reached')`,
      `importScripts('${outside}')`,
      `await new Promise((resolve, reject) => Object.assign(new WebSocket('wss://example.com'), { onopen: resolve, onerror: () => reject(new Error('blocked')) }))`,
      `await new Promise((resolve, reject) => Object.assign(indexedDB.open('x'), { onsuccess: () => resolve('reached'), onerror: () => reject(new Error('blocked')) }))`,
      `await caches.keys()`,
    ]
    for (const code of tries) expect(await runCode(page, code), code).toMatch(/Error/)
    expect(requests.filter((url) => url.includes('example.com'))).toEqual([])

    const workers = page.workers().length
    expect(await runCode(page, 'for (;;) {}')).toBe('The code did not end within 5 s.')
    await expect.poll(() => page.locator('iframe').count()).toBe(0)
    await expect.poll(() => page.workers().length).toBe(workers)
  },
)

test(
  'the document of the sandbox runs nothing in a tab of its own',
  { tags: ['slow'] },
  async () => {
    const { page } = await open()
    await page.goto(`${inject('demo')}sandbox.html`)
    const answered = await page.evaluate(
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
    expect(page.workers()).toEqual([])
  },
)

test(
  'read_page reads text of this site only, and the dialog fits a phone',
  { tags: ['slow'] },
  async () => {
    const settings = { enabled: ['read_page'] }
    const viewport = { width: 390, height: 844 }
    const { page } = await open({ before: scriptedCalls, ...withSettings(settings), viewport })
    const calls: [string, object][] = [
      ['read_page', { path: 'llms.txt' }],
      ['read_page', { path: 'https://example.com/' }],
      ['read_page', { path: 'favicon.ico' }],
    ]
    await setScript(page, [calls])
    await send(page, 'Read.')
    const run = page.getByRole('button', { name: 'Run', exact: true })
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
    const overflow = await page.evaluate(
      () => document.documentElement.scrollWidth - window.innerWidth,
    )
    expect(overflow).toBe(0)
    expect(await findAccessibilityProblems(page)).toEqual([])
  },
)
