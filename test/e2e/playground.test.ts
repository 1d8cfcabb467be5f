/** The playground's chat as a newcomer meets it: built, in a real browser, with nothing cached. */
import { describe, expect, inject, test } from 'vitest'
import { makePatient } from '../support/browser.ts'
import { brokenAnswer, endlessAnswer, hostileAnswer } from '../support/fakes.ts'
import { usePlayground, type PlaygroundOptions } from '../support/playground.ts'
import { openSite } from '../support/site.ts'

const openAt = usePlayground()
const open = (query = '', options?: PlaygroundOptions) =>
  openAt(`${inject('demo')}${query}`, options)

describe('the chat', () => {
  test('streams the first answer with nothing cached and breaks no rule of its policy', async () => {
    const { page, ask, answer, faults } = await open()
    await ask('Who are you?')
    expect(await answer()).not.toBe('')
    const meta = await page.locator('.meta').innerText()
    expect(meta).toMatch(/^\/v1\/chat\/completions · \d+ tokens? .*first token after/)
    const events = (await page.locator('#events').textContent()) ?? ''
    expect(events).toMatch(/^(: |data: )/)
    expect(events.match(/"delta":\{"content":/g)?.length).toBeGreaterThan(1)
    expect(events.endsWith('data: [DONE]\n\n')).toBe(true)
    expect(await page.locator('#loading').isHidden()).toBe(true)
    expect(faults).toEqual([])
  })

  test('keeps the conversation when the wire style is switched', { tags: ['slow'] }, async () => {
    const { page, ask, answer } = await open()
    await ask('Who are you?')
    const first = await answer()
    await page.getByLabel('/v1/messages').check()
    await ask('What is 2 + 3?')
    expect(await page.locator('.meta').last().innerText()).toMatch(/^\/v1\/messages · \d+ token/)
    const events = (await page.locator('#events').textContent()) ?? ''
    expect(events).toContain('event: content_block_delta')
    expect(events).toMatch(/event: message_stop\ndata: .*\n\n$/)
    const code = (await page.locator('#request').textContent()) ?? ''
    expect(code).toContain("fetch('/v1/messages'")
    const body = bodyOf(code)
    expect(body['messages']).toEqual([
      { role: 'user', content: 'Who are you?' },
      { role: 'assistant', content: first },
      { role: 'user', content: 'What is 2 + 3?' },
    ])
    expect(body['max_tokens']).toBeGreaterThan(0)
  })

  test('sends what the settings say', { tags: ['slow'] }, async () => {
    const { page, ask } = await open()
    await page.getByRole('tab', { name: 'Settings' }).click()
    await page.getByLabel('System prompt').fill('Be brief.')
    await page.getByLabel('Temperature').fill('0.5')
    await page.getByLabel('Max tokens').fill('3')
    await page.getByLabel('Seed').fill('7')
    await ask('What is inorigin?')
    const body = bodyOf((await page.locator('#request').textContent()) ?? '')
    expect(body).toMatchObject({ temperature: 0.5, max_completion_tokens: 3, seed: 7 })
    expect(body['messages']).toMatchObject([
      { role: 'system', content: 'Be brief.' },
      { role: 'user' },
    ])
    expect(await page.locator('.meta').innerText()).toContain('3 tokens')
  })

  test('answers a question that was asked before the first visit was reloaded', async () => {
    let isReleased = false
    const site = await openSite({ slow: { '/playground-sw.js': () => isReleased } })
    const page = makePatient(await site.open('/'))
    try {
      await page.getByLabel('Your question').fill('Who are you?')
      await page.keyboard.press('Enter')
      await page.locator('.turn .wait').waitFor()
      expect(await page.evaluate(() => crossOriginIsolated)).toBe(false)
      isReleased = true
      await page.waitForFunction(() => crossOriginIsolated)
      await page.locator('.turn .meta', { hasText: 'first token after' }).waitFor()
      expect(await page.locator('.question').allInnerTexts()).toEqual(['Who are you?'])
      expect(await page.locator('.answer').innerText()).not.toBe('')
    } finally {
      await site.close()
    }
  })

  test(
    'stops while the model is still loading, and answers after',
    { tags: ['slow'] },
    async () => {
      let isReleased = false
      const file = '/inorigin/models/guide/onnx/model.onnx'
      const site = await openSite({ slow: { [file]: () => isReleased } })
      try {
        const { page, ask, answer } = await openAt(`${site.url}/`)
        await page.getByLabel('Your question').fill('Who are you?')
        await page.keyboard.press('Enter')
        await page.getByRole('button', { name: 'Stop' }).click()
        expect(await page.locator('.meta').innerText()).toMatch(/^stopped/)
        isReleased = true
        await ask('Who are you?')
        expect(await answer()).not.toBe('')
      } finally {
        await site.close()
      }
    },
  )

  test('stops in the middle of an answer, by Escape, and keeps what came', async () => {
    const { page } = await open('', { before: endlessAnswer })
    await page.getByLabel('Your question').fill('Count.')
    await page.keyboard.press('Enter')
    await page.locator('.answer').waitFor()
    await page.keyboard.press('Escape')
    await page.locator('.meta').waitFor()
    expect(await page.locator('.meta').innerText()).toMatch(/^stopped/)
    expect(await page.locator('.answer').innerText()).toBe('one two')
    expect(await page.evaluate(() => Reflect.get(window, 'aborted'))).toBe(true)
  })

  test('shows what a model writes as text', async () => {
    const { page, ask, answer, faults } = await open('', { before: hostileAnswer })
    await ask('Attack.')
    const text = '<img src=x onerror="stolen=1"> <script>stolen=1</script> <b>bold</b>'
    expect(await answer()).toBe(text)
    expect(await page.locator('.answer').locator('img, script, b').count()).toBe(0)
    expect(await page.locator('#events').textContent()).toContain('onerror')
    expect(await page.locator('#events :not(.piece)').count()).toBe(0)
    expect(faults).toEqual([])
  })

  test('says what a refusal says, and what can be done', { tags: ['slow'] }, async () => {
    const { page, ask } = await open()
    await page.getByRole('tab', { name: 'Settings' }).click()
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

  test('says so when the answer breaks off', { tags: ['slow'] }, async () => {
    const { page, ask } = await open('', { before: brokenAnswer })
    await ask('Break.')
    expect(await page.getByRole('alert').innerText()).toMatch(/broke off/)
  })

  test('begins anew', { tags: ['slow'] }, async () => {
    const { page, ask } = await open('', { before: hostileAnswer })
    await ask('First.')
    await page.getByRole('button', { name: 'New chat' }).click()
    expect(await page.locator('.turn').count()).toBe(0)
    expect(await page.getByRole('heading', { level: 1 }).isVisible()).toBe(true)
    await ask('Second.')
    const body = bodyOf((await page.locator('#request').textContent()) ?? '')
    expect(body['messages']).toEqual([{ role: 'user', content: 'Second.' }])
  })
})

/** The body of a request that is shown as code: runs the code with a `fetch` that only looks. */
function bodyOf(code: string): Record<string, unknown> {
  const request = code.slice(0, code.indexOf('const reader')).replace('await ', '')
  const look = (_url: string, init: { body: string }) => init.body
  return JSON.parse(new Function('fetch', `${request}\nreturn response`)(look))
}
