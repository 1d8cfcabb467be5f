/** The playground's chat beyond a first answer: branches, continuing, reasoning, parameters. */
import type { Page } from 'playwright'
import { describe, expect, test } from 'vitest'
import { findAccessibilityProblems } from '../support/axe.ts'
import { scriptedAnswers, type ScriptedWindow } from '../support/fakes.ts'
import { scriptAnswers, usePlayground, type PlaygroundOptions } from '../support/playground.ts'

const openAt = usePlayground({ before: scriptedAnswers })
const open = (options?: PlaygroundOptions) => openAt(undefined, options)

/** Messages of the last request, as `role: content`. */
function lastMessages(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const { messages } = (window as unknown as ScriptedWindow).bodies.at(-1) ?? {}
    const list = messages as { role: string; content: string }[]
    return list.map(({ role, content }) => `${role}: ${content}`)
  })
}

const answers = (page: Page) => page.locator('.answer').allInnerTexts()
const tool = (page: Page, name: string) => page.getByRole('button', { name, exact: true })

describe('branches', () => {
  test('an edited question and a new answer are branches that can be switched', async () => {
    const { page, ask, faults } = await open()
    await ask('One?')
    await ask('Two?')
    await tool(page, 'Edit the question').first().click()
    await page.getByLabel('Edited question').fill('Uno?')
    await page.keyboard.press('Enter')
    await expect.poll(() => answers(page)).toEqual(['Answer 3.'])
    expect(await lastMessages(page)).toEqual(['user: Uno?'])
    await expect.poll(() => tool(page, 'Regenerate').count()).toBe(1)
    await tool(page, 'Regenerate').click()
    await expect.poll(() => answers(page)).toEqual(['Answer 4.'])
    const versions = page.getByRole('group', { name: 'Versions' }).first()
    expect(await versions.innerText()).toMatch(/3 \/ 3/)

    await tool(page, 'Regenerate').waitFor()
    await tool(page, 'Previous version').first().press('Enter')
    await expect.poll(() => answers(page)).toEqual(['Answer 3.'])
    await tool(page, 'Previous version').first().press('Enter')
    await expect.poll(() => answers(page)).toEqual(['Answer 1.', 'Answer 2.'])
    expect(
      await tool(page, 'Next version')
        .first()
        .evaluate((it) => it.matches(':focus')),
    ).toBe(true)
    await ask('Three?')
    expect(await lastMessages(page)).toEqual([
      'user: One?',
      'assistant: Answer 1.',
      'user: Two?',
      'assistant: Answer 2.',
      'user: Three?',
    ])
    expect(faults).toEqual([])
  })

  test('a deleted turn is no part of the next request', async () => {
    const { page, ask } = await open()
    for (const question of ['One?', 'Two?', 'Three?']) await ask(question)
    await tool(page, 'Delete').nth(1).click()
    expect(await answers(page)).toEqual(['Answer 1.', 'Answer 3.'])
    await ask('Four?')
    expect(await lastMessages(page)).toEqual([
      'user: One?',
      'assistant: Answer 1.',
      'user: Three?',
      'assistant: Answer 3.',
      'user: Four?',
    ])
  })

  test('an edit that is canceled changes nothing', { tags: ['slow'] }, async () => {
    const { page, ask } = await open()
    await ask('One?')
    await tool(page, 'Edit the question').click()
    await page.getByLabel('Edited question').fill('Uno?')
    await page.keyboard.press('Escape')
    expect(await page.locator('.question').innerText()).toBe('One?')
    expect(await tool(page, 'Edit the question').evaluate((it) => it.matches(':focus'))).toBe(true)
  })
})

describe('an answer', () => {
  test(
    'that fails in its middle keeps its text, says why in plain words, and can be asked again',
    { tags: ['slow'] },
    async () => {
      const { page, ask } = await open()
      const message =
        'Cannot reach https://hub.example/x: status 503. Call server.storage.remove().'
      const error = { message, type: 'overloaded_error', param: null, code: 'hub_unreachable' }
      await scriptAnswers(page, { deltas: [{ content: 'Half an' }], error })
      await ask('One?')
      expect(await answers(page)).toEqual(['Half an'])
      const problem = page.getByRole('alert')
      expect(await problem.locator('p').innerText()).toBe(
        'The hub that has the model cannot be reached now. Try again later.',
      )
      await problem.getByRole('button', { name: 'Ask again' }).click()
      await expect.poll(() => answers(page)).toEqual(['Answer 2.'])
      expect(await problem.count()).toBe(0)
      expect(await lastMessages(page)).toEqual(['user: One?'])
    },
  )

  test('that was cut continues where it ended', { tags: ['slow'] }, async () => {
    const { page, ask } = await open()
    await scriptAnswers(
      page,
      { deltas: [{ content: 'Once upon ' }], finish: 'length' },
      { deltas: [{ content: ' a time.' }] },
    )
    await ask('Tell a story.')
    expect(await page.locator('.meta').innerText()).toContain('cut at the token limit')
    await tool(page, 'Continue').click()
    await expect.poll(() => answers(page)).toEqual(['Once upon a time.'])
    expect(await lastMessages(page)).toEqual(['user: Tell a story.', 'assistant: Once upon'])
    expect(
      await page.evaluate(() => (window as unknown as ScriptedWindow).bodies.at(-1)),
    ).toMatchObject({ continue_final_message: true })
    await expect.poll(() => tool(page, 'Regenerate').count()).toBe(1)
    expect(await tool(page, 'Continue').count()).toBe(0)
  })

  test(
    'that was stopped continues, too, and says why where a style cannot',
    { tags: ['slow'] },
    async () => {
      const { page, answer } = await open()
      await scriptAnswers(page, { deltas: [{ content: 'Half' }], isOpen: true })
      await page.getByLabel('Your question').fill('Count.')
      await page.keyboard.press('Enter')
      await page.locator('.answer', { hasText: 'Half' }).waitFor()
      await page.keyboard.press('Escape')
      await tool(page, 'Continue').waitFor()
      await page.getByLabel('/v1/responses').check()
      await tool(page, 'Continue').click()
      await page.getByText('/v1/responses cannot continue an answer.').waitFor()
      await page.getByLabel('/v1/chat/completions').check()
      await scriptAnswers(page, { deltas: [{ content: ' and whole.' }] })
      await tool(page, 'Continue').click()
      await expect.poll(answer).toBe('Half and whole.')
    },
  )

  test('can be continued again after its continuation failed', { tags: ['slow'] }, async () => {
    const { page, ask, answer } = await open()
    await scriptAnswers(page, { deltas: [{ content: 'Once upon' }], finish: 'length' })
    await ask('Tell a story.')
    await page.evaluate(() => {
      const scripted = window.fetch
      window.fetch = async (input, init) => {
        if (!String(input).endsWith('/chat/completions')) return scripted(input, init)
        window.fetch = scripted
        return new Response('{"error":{"message":"Out of ink"}}', { status: 500 })
      }
    })
    await tool(page, 'Continue').click()
    await page.locator('.notice', { hasText: 'Out of ink' }).waitFor()
    expect(await answer()).toBe('Once upon')
    await scriptAnswers(page, { deltas: [{ content: ' a time.' }] })
    await tool(page, 'Continue').click()
    await expect.poll(answer).toBe('Once upon a time.')
  })

  test('folds its reasoning and counts its tokens', { tags: ['slow'] }, async () => {
    const { page, ask, answer } = await open()
    await scriptAnswers(page, {
      deltas: [
        { reasoning_content: 'Let me ' },
        { reasoning_content: '<b>think</b>.' },
        { content: 'Done.' },
      ],
      usage: {
        prompt_tokens: 40,
        completion_tokens: 9,
        prompt_tokens_details: { cached_tokens: 32 },
        completion_tokens_details: { reasoning_tokens: 6 },
      },
    })
    await ask('Think.')
    expect(await answer()).toBe('Done.')
    const summary = page.locator('.reasoning summary')
    expect(await summary.innerText()).toMatch(/^Reasoning · .*s · 6 tokens$/)
    expect(await page.locator('.reasoning-text').isVisible()).toBe(false)
    await summary.press('Enter')
    expect(await page.locator('.reasoning-text').innerText()).toBe('Let me <b>think</b>.')
    const meta = await page.locator('.meta').innerText()
    expect(meta).toContain('9 tokens')
    expect(meta).toContain('prompt of 40, 32 cached')
    expect(meta).toContain('first token after')
  })

  test('is read to screen readers by sentences, while it arrives', { tags: ['slow'] }, async () => {
    const { page, answer } = await open()
    const log = page.getByRole('log', { name: 'Answer as it arrives' })
    const text = 'It **runs** here. It is not'
    await scriptAnswers(page, { deltas: [{ content: text }], isOpen: true })
    await page.getByLabel('Your question').fill('Where?')
    await page.getByRole('button', { name: 'Send' }).click()
    await expect.poll(() => log.innerText()).toBe('It runs here.')
    await expect.poll(answer).toContain('It is not')
    await page.getByRole('button', { name: 'Stop' }).click()
    await expect
      .poll(() => log.locator('p').allInnerTexts())
      .toEqual(['It runs here.', 'It is not'])
  })

  test('comes from /v1/responses as well', { tags: ['slow'] }, async () => {
    const { page, ask, answer, faults } = await open({ before: undefined })
    await page.getByLabel('/v1/responses').check()
    await ask('Who are you?')
    const first = await answer()
    expect(first).not.toBe('')
    expect(await page.locator('.meta').innerText()).toMatch(
      /^\/v1\/responses · \d+ token.*prompt of/,
    )
    await ask('What is 2 + 3?')
    const events = (await page.locator('#events').textContent()) ?? ''
    expect(events).toContain('event: response.output_text.delta')
    expect(events).toContain('event: response.completed')
    expect(faults).toEqual([])
  })
})

describe('the parameters', () => {
  test(
    'a value that is not possible is said at its field, and not sent',
    { tags: ['slow'] },
    async () => {
      const { page, ask } = await open()
      await page.getByRole('tab', { name: 'Settings' }).click()
      const temperature = page.getByLabel('Temperature')
      await temperature.fill('9')
      const note = page.getByText('Temperature must be a number between 0 and 2, got "9".')
      await note.first().waitFor()
      expect(await temperature.getAttribute('aria-invalid')).toBe('true')
      await page.getByLabel('Your question').fill('Hello?')
      await page.getByRole('button', { name: 'Send' }).click()
      await page.locator('.notice', { hasText: 'Correct it in the settings.' }).waitFor()
      expect(await page.locator('.turn').count()).toBe(0)
      expect(await page.getByLabel('Your question').inputValue()).toBe('Hello?')
      await temperature.fill('0,5')
      await ask('Hello?')
      expect(await page.locator('.notice').count()).toBe(0)
      expect(await page.evaluate(() => (window as unknown as ScriptedWindow).bodies)).toMatchObject(
        [{ temperature: 0.5 }],
      )
    },
  )

  test('are all sent, and survive a reload', { tags: ['slow'] }, async () => {
    const { page, ask } = await open()
    const settings = {
      'Top p': '0.9',
      'Top k': '40',
      'Min p': '0.05',
      'Frequency penalty': '0.5',
      'Presence penalty': '-0.5',
      'Repetition penalty': '1.1',
      'Stop sequences': 'END\n\\n\\n',
      'Logit bias': '{ "42": -100 }',
      'JSON schema of the answer':
        '{ "type": "object", "properties": { "a": { "type": "string" } } }',
    }
    await page.getByRole('tab', { name: 'Settings' }).click()
    for (const [label, value] of Object.entries(settings)) await page.getByLabel(label).fill(value)
    await page.reload()
    await ask('Hello?')
    expect(
      await page.evaluate(() => (window as unknown as ScriptedWindow).bodies.at(-1)),
    ).toMatchObject({
      top_p: 0.9,
      top_k: 40,
      min_p: 0.05,
      frequency_penalty: 0.5,
      presence_penalty: -0.5,
      repetition_penalty: 1.1,
      stop: ['END', '\n\n'],
      logit_bias: { 42: -100 },
      response_format: { type: 'json_schema', json_schema: { schema: { type: 'object' } } },
    })
  })

  test(
    'that a style does not take are disabled and say why; a schema is checked',
    { tags: ['slow'] },
    async () => {
      const { page } = await open()
      await page.getByRole('tab', { name: 'Settings' }).click()
      const stop = page.getByLabel('Stop sequences')
      expect(await stop.isEnabled()).toBe(true)
      await page.getByLabel('/v1/responses').check()
      expect(await stop.isEnabled()).toBe(false)
      await page.getByText('/v1/responses has no stop sequences.').waitFor()
      const schema = page.getByLabel('JSON schema of the answer')
      await schema.fill('{ "type": ')
      await page.getByText('The schema is not JSON').waitFor()
      await schema.fill('{ "properties": { "a": { "type": "text" } } }')
      await page.getByText('$.properties.a.type must be one of string, number').waitFor()
      await schema.fill('{ "properties": { "a": { "type": "string" } } }')
      await page.getByText('$.properties').waitFor({ state: 'detached' })
      expect(await schema.getAttribute('aria-invalid')).toBe('false')
    },
  )
})

test('the first screen says what the embedded models can do', { tags: ['slow'] }, async () => {
  const { page } = await open()
  const said = await page.locator('#welcome').innerText()
  expect(said).toMatch(
    /the guide answers only questions about\s+inorigin,\s+a\s+few\s+common\s+facts/,
  )
  expect(said).toMatch(/Glance says what a simple\s+drawing\s+shows/)
})

test.each(['light', 'dark'] as const)(
  'axe-core finds nothing in a chat of 390 pixels in the %s',
  { tags: ['slow'] },
  async (colorScheme) => {
    const { page, ask } = await open({ viewport: { width: 390, height: 844 }, colorScheme })
    await scriptAnswers(page, {
      deltas: [
        { reasoning_content: 'Hm.' },
        {
          content:
            '## A\n\n[a](https://x.test/) `b`\n\n```js\nlet a = 1 // b\n```\n\n| a |\n|---|\n| b |',
        },
      ],
      finish: 'length',
    })
    await ask('Show all.')
    await tool(page, 'Regenerate').click()
    await page.getByText('2 / 2').waitFor()
    await tool(page, 'Previous version').click()
    await tool(page, 'Continue').waitFor()
    expect(await findAccessibilityProblems(page, '#log')).toEqual([])
    const overflow = () =>
      page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
    expect(await overflow()).toBe(0)
    await page.getByRole('button', { name: 'Wire, predictors and settings' }).click()
    await page.getByRole('tab', { name: 'Settings' }).click()
    expect(await findAccessibilityProblems(page, '#settings-form')).toEqual([])
    expect(await overflow()).toBe(0)
  },
)
