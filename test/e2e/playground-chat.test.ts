/** The playground's chat beyond a first answer: branches, continuing, reasoning, parameters, and the inspector. */
import { describe, expect, test } from 'vitest'
import { makePatient } from '../support/browser.ts'
import {
  give,
  bodiesOf,
  chooseStyle,
  expectAnswers,
  openTab,
  scriptAnswers,
  send,
  sharePlayground,
  toolButton,
  usePlayground,
} from '../support/playground.ts'
import { openSite } from '../support/site.ts'

const MODEL_FILE = '/inorigin/models/guide/onnx/model.onnx'

const SLOW = { tags: ['slow'] }

describe('with answers by a script', () => {
  const shared = sharePlayground({ isScripted: true })

  /** Messages of the last request, as `role: content`. */
  async function lastMessages(): Promise<string[]> {
    const messages = (await bodiesOf(shared().page)).at(-1)?.['messages']
    const list = messages as { role: string; content: string }[]
    return list.map(({ role, content }) => `${role}: ${content}`)
  }

  test('keeps an edited question and a new answer as branches that can be switched', async () => {
    const { page, ask, faults } = shared()
    await ask('One?')
    await ask('Two?')
    await toolButton(page, 'Edit the question').first().click()
    await page.getByLabel('Edited question').fill('Uno?')
    await page.keyboard.press('Enter')
    await expectAnswers(page, 'Answer 3.')
    expect(await lastMessages()).toEqual(['user: Uno?'])
    await expect.poll(() => toolButton(page, 'Regenerate').count()).toBe(1)
    await toolButton(page, 'Regenerate').click()
    await expectAnswers(page, 'Answer 4.')
    const versions = page.getByRole('group', { name: 'Versions' }).first()
    expect(await versions.innerText()).toMatch(/3 \/ 3/)

    await toolButton(page, 'Regenerate').waitFor()
    await toolButton(page, 'Previous version').first().press('Enter')
    await expectAnswers(page, 'Answer 3.')
    await toolButton(page, 'Previous version').first().press('Enter')
    await expectAnswers(page, 'Answer 1.', 'Answer 2.')
    const next = toolButton(page, 'Next version').first()
    expect(await next.evaluate((it) => it.matches(':focus'))).toBe(true)
    await ask('Three?')
    expect(await lastMessages()).toEqual([
      'user: One?',
      'assistant: Answer 1.',
      'user: Two?',
      'assistant: Answer 2.',
      'user: Three?',
    ])
    expect(faults).toEqual([])
  })

  test('leaves a deleted turn out of the next request, and cancels an edit', SLOW, async () => {
    const { page, ask } = shared()
    for (const question of ['One?', 'Two?', 'Three?']) await ask(question)
    await toolButton(page, 'Delete').nth(1).click()
    await expectAnswers(page, 'Answer 1.', 'Answer 3.')
    const edit = toolButton(page, 'Edit the question').first()
    await edit.click()
    await page.getByLabel('Edited question').fill('Uno?')
    await page.keyboard.press('Escape')
    expect(await page.locator('.question').first().innerText()).toBe('One?')
    expect(await edit.evaluate((it) => it.matches(':focus'))).toBe(true)
    await ask('Four?')
    expect(await lastMessages()).toEqual([
      'user: One?',
      'assistant: Answer 1.',
      'user: Three?',
      'assistant: Answer 3.',
      'user: Four?',
    ])
  })

  test('keeps the text of an answer that fails in its middle, and asks again', SLOW, async () => {
    const { page, ask } = shared()
    const message = 'Cannot reach https://hub.example/x: status 503. Call server.storage.remove().'
    const error = { kind: 'unavailable', message, code: 'hub_unreachable' } as const
    await scriptAnswers(page, { text: 'Half an', error })
    await ask('One?')
    await expectAnswers(page, 'Half an')
    const problem = page.getByRole('alert')
    expect(await problem.locator('p').innerText()).toBe(
      'The hub of the model cannot be reached now. Try again later.',
    )
    await problem.getByRole('button', { name: 'Ask again' }).click()
    await expectAnswers(page, 'Answer 2.')
    expect(await problem.count()).toBe(0)
    expect(await lastMessages()).toEqual(['user: One?'])
  })

  test('continues an answer where it was cut, also after the continuation failed', async () => {
    const { page, ask, answer } = shared()
    await openTab(page, 'Settings')
    await page.getByLabel('Max tokens').fill('2')
    await scriptAnswers(page, 'Once upon a')
    await ask('Tell a story.')
    expect(await page.locator('.meta').innerText()).toContain('cut at the token limit')
    await page.getByLabel('Max tokens').fill('')
    await scriptAnswers(page, { error: { kind: 'internal', message: 'Out of ink' } })
    await toolButton(page, 'Continue').click()
    await page.locator('.notice', { hasText: 'Out of ink' }).waitFor()
    expect(await answer()).toBe('Once upon')
    await scriptAnswers(page, ' a time.')
    await toolButton(page, 'Continue').click()
    await expectAnswers(page, 'Once upon a time.')
    expect(await lastMessages()).toEqual(['user: Tell a story.', 'assistant: Once upon'])
    expect((await bodiesOf(page)).at(-1)).toMatchObject({ continue_final_message: true })
    await expect.poll(() => toolButton(page, 'Regenerate').count()).toBe(1)
    expect(await toolButton(page, 'Continue').count()).toBe(0)
  })

  test('continues an answer that was stopped, or says why a style cannot', SLOW, async () => {
    const { page } = shared()
    await scriptAnswers(page, { text: 'Half', isOpen: true })
    await send(page, 'Count.')
    await expectAnswers(page, 'Half')
    await page.keyboard.press('Escape')
    await toolButton(page, 'Continue').waitFor()
    await chooseStyle(page, 'Responses')
    await toolButton(page, 'Continue').click()
    await page.getByText('The style Responses cannot continue an answer.').waitFor()
    await chooseStyle(page, 'Chat')
    await scriptAnswers(page, ' and whole.')
    await toolButton(page, 'Continue').click()
    await expectAnswers(page, 'Half and whole.')
  })

  test('folds its reasoning and counts its tokens', async () => {
    const { page, ask, answer } = shared()
    await openTab(page, 'Settings')
    await page.getByLabel('Reasoning effort').selectOption('low')
    await scriptAnswers(page, { reasoning: 'Let me <b>think</b>.', text: 'Done.' })
    await ask('Think.')
    expect(await answer()).toBe('Done.')
    const summary = page.locator('.reasoning summary')
    expect(await summary.innerText()).toMatch(/^Reasoning · .*s · 3 tokens$/)
    expect(await page.locator('.reasoning-text').isVisible()).toBe(false)
    await summary.press('Enter')
    expect(await page.locator('.reasoning-text').innerText()).toBe('Let me <b>think</b>.')
    const meta = await page.locator('.meta').innerText()
    expect(meta).toMatch(/5 tokens .*first token after .*prompt of 1 token$/)
  })

  test('is read to screen readers by sentences, while it arrives', async () => {
    const { page, answer } = shared()
    const log = page.getByRole('log', { name: 'Answer as it arrives' })
    await scriptAnswers(page, { text: 'It **runs** here. It is not', isOpen: true })
    await send(page, 'Where?')
    await expect.poll(() => log.innerText()).toBe('It runs here.')
    await expect.poll(answer).toContain('It is not')
    await page.getByRole('button', { name: 'Stop' }).click()
    await expect
      .poll(() => log.locator('p').allInnerTexts())
      .toEqual(['It runs here.', 'It is not'])
  })

  test('copies its code, and itself as it was written', SLOW, async () => {
    const { page, ask } = shared()
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    const read = () => page.evaluate(() => navigator.clipboard.readText())
    const text = 'Run **this**:\n\n```sh\nls -la\n```'
    await scriptAnswers(page, text)
    await ask('How?')
    await page.locator('.answer').getByRole('button', { name: 'Copy' }).click()
    await page.getByRole('button', { name: 'Copied' }).waitFor()
    expect(await read()).toBe('ls -la')
    await page.locator('.turn-tools').getByRole('button', { name: 'Copy' }).click()
    await expect.poll(read).toBe(text)
  })

  test('stays readable when the Markdown parser cannot be loaded', SLOW, async () => {
    const { page, ask, answer } = shared()
    await page.evaluate(() => {
      window.Worker = new Proxy(Worker, {
        // The workers of the library have other names.
        construct: (Real, [url, options]: [string | URL, WorkerOptions]) =>
          new Real(/worker-/.test(String(url)) ? '/missing.js' : url, options),
      })
    })
    await scriptAnswers(page, 'A **bold** word.')
    await ask('Hello?')
    expect(await answer()).toBe('A **bold** word.')
    expect(await page.locator('.answer.plain-text').count()).toBe(1)
  })

  test('names a value that is not possible at its field, and does not send it', SLOW, async () => {
    const { page, ask } = shared()
    await openTab(page, 'Settings')
    const temperature = page.getByLabel('Temperature')
    await temperature.fill('9')
    const note = page.getByText('Temperature must be a number between 0 and 2, got "9".')
    await note.first().waitFor()
    expect(await temperature.getAttribute('aria-invalid')).toBe('true')
    await send(page, 'Hello?')
    await page.locator('.notice', { hasText: 'Correct it in the settings.' }).waitFor()
    expect(await page.locator('.turn').count()).toBe(0)
    expect(await page.getByLabel('Your question').inputValue()).toBe('Hello?')
    await temperature.fill('0,5')
    await ask('Hello?')
    expect(await page.locator('.notice').count()).toBe(0)
    expect(await bodiesOf(page)).toMatchObject([{ temperature: 0.5 }])
  })

  test('sends all parameters, and keeps them across a reload', SLOW, async () => {
    const { page, ask } = shared()
    const settings = {
      'System prompt': 'Be brief.',
      Temperature: '0.5',
      'Max tokens': '3',
      Seed: '7',
      'Top p': '0.9',
      'Top k': '40',
      'Min p': '0.05',
      'Frequency penalty': '0.5',
      'Presence penalty': '-0.5',
      'Repetition penalty': '1.1',
      'Stop sequences': 'END\n\\n\\n',
      'Logit bias': '{"42": -100}',
      'JSON schema of the answer': '{"type": "object"}',
    }
    await openTab(page, 'Settings')
    for (const [label, value] of Object.entries(settings)) await page.getByLabel(label).fill(value)
    await page.reload()
    await ask('Hello?')
    expect((await bodiesOf(page)).at(-1)).toMatchObject({
      messages: [{ role: 'system', content: 'Be brief.' }, { role: 'user' }],
      temperature: 0.5,
      max_completion_tokens: 3,
      seed: 7,
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

  test('disables parameters that a style does not take, says why, and checks a schema', async () => {
    const { page } = shared()
    await openTab(page, 'Settings')
    const stop = page.getByLabel('Stop sequences')
    expect(await stop.isEnabled()).toBe(true)
    await chooseStyle(page, 'Responses')
    await openTab(page, 'Settings')
    expect(await stop.isEnabled()).toBe(false)
    await page.getByText('The style Responses has no stop sequences.').waitFor()
    const schema = page.getByLabel('JSON schema of the answer')
    await schema.fill('{ "properties": { "a": { "type": "text" } } }')
    await page.getByText('$.properties.a.type must be one of string, number').waitFor()
    await schema.fill('{ "properties": { "a": { "type": "string" } } }')
    await page.getByText('$.properties').waitFor({ state: 'detached' })
    expect(await schema.getAttribute('aria-invalid')).toBe('false')
  })
})

describe('the inspector', () => {
  const shared = sharePlayground()

  test('shows code, time line, headers, usage and the other style, and replays', async () => {
    const { page, ask, faults } = shared()
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await openTab(page, 'Requests')
    await ask('Who are you?')
    await page.locator('summary', { hasText: 'Timeline' }).click()
    await page.getByText(/^\d+ events · \d+ with text · /).waitFor()
    const rows = page.getByRole('region', { name: 'Timeline of events' }).locator('tbody tr')
    const kinds = await rows.evaluateAll((all) => all.map(({ className }) => className))
    expect(kinds.filter((kind) => kind === 'token').length).toBeGreaterThan(1)
    expect(await page.locator('tr.token').first().innerText()).toMatch(/s\s+.*s\s+"/)

    await page.locator('summary', { hasText: 'Headers and usage' }).click()
    const requests = page.locator('#requests')
    await requests.getByText('x-request-id').waitFor()
    expect(await requests.innerText()).toMatch(/prompt_tokens\s+\d+/)

    await page.locator('summary', { hasText: 'The same request as /v1/messages' }).click()
    const lines = page.getByRole('region', { name: 'Request in the other style' })
    await lines.getByText('- POST /v1/chat/completions').waitFor()
    const text = await lines.innerText()
    expect(text).toContain('+ POST /v1/messages')
    expect(text).toMatch(/^ {4}"model": "@inorigin\/guide",$/m)

    await page.locator('#code-kind').selectOption('curl')
    const code = await page.locator('#request').textContent()
    expect(code).toContain('curl --no-buffer http://127.0.0.1:11435/v1/chat/completions')
    const paths: string[] = []
    page.on('request', (request) => paths.push(new URL(request.url()).pathname))
    await page.getByRole('button', { name: 'Replay' }).click()
    await expect.poll(() => paths).toContain('/v1/chat/completions')
    await page.getByText(/^\d+ events · /).waitFor()
    // A replayed request adds no turn to the chat.
    expect(await page.locator('.turn').count()).toBe(1)
    expect(faults).toEqual([])
    // The choice stays for the next visit.
    await page.reload()
    expect(await page.locator('#code-kind').inputValue()).toBe('curl')
  })

  test('the error of a refusal is shown, and the question can be asked again', async () => {
    const { page, ask } = shared()
    await openTab(page, 'Settings')
    const schema = page.getByLabel('JSON schema of the answer')
    await schema.fill('{ "type": "array", "items": {}, "uniqueItems": true }')
    await ask('Who are you?')
    const problem = page.getByRole('alert')
    expect(await problem.innerText()).toMatch(/uniqueItems/)
    await schema.fill('')
    await problem.getByRole('button', { name: 'Ask again' }).click()
    await page.locator('.meta').waitFor()
    expect(await problem.count()).toBe(0)
  })
})

describe('while the page or the model is not ready', () => {
  const open = usePlayground()

  test('a first visit in use is not reloaded, answers, and keeps what is typed', SLOW, async () => {
    let isReleased = false
    const site = await openSite({ slow: { '/playground-sw.js': () => isReleased } })
    const page = makePatient(await site.open('/'))
    try {
      await send(page, 'Who are you?')
      await page.locator('.turn .wait').waitFor()
      await page.getByLabel('Your question').fill('What is ')
      await page.getByRole('button', { name: 'Models', exact: true }).click()
      await page.evaluate(() => Object.assign(window, { isSame: true }))
      isReleased = true
      await page.locator('.turn .meta', { hasText: 'first token after' }).waitFor()
      expect(await page.locator('.question').allInnerTexts()).toEqual(['Who are you?'])
      const typed = () => page.getByLabel('Your question').inputValue()
      expect(await typed()).toBe('What is ')
      expect(await page.locator('dialog.page').isVisible()).toBe(true)
      expect(await page.evaluate(() => [crossOriginIsolated, 'isSame' in window])).toEqual([
        false,
        true,
      ])
      await page.keyboard.press('Escape')
      await give(page.locator('main'), 'drop', 'test/models/vision/clear.png', 'image/png')
      const image = page.locator('#images img')
      await image.waitFor()
      const source = await image.getAttribute('src')
      // The user's own reload isolates the page.
      await page.reload()
      await page.waitForFunction(() => crossOriginIsolated)
      expect(await image.getAttribute('src')).toBe(source)
      expect(await typed()).toBe('What is ')
    } finally {
      await site.close()
    }
  })

  test('stops while the model is still loading, and answers after', SLOW, async () => {
    let isReleased = false
    const site = await openSite({ slow: { [MODEL_FILE]: () => isReleased } })
    try {
      const { page, ask, answer } = await open(`${site.url}/`)
      await send(page, 'Who are you?')
      await page.getByRole('button', { name: 'Stop' }).click()
      expect(await page.locator('.meta').innerText()).toMatch(/^stopped/)
      isReleased = true
      await ask('Who are you?')
      expect(await answer()).not.toBe('')
    } finally {
      await site.close()
    }
  })
})
