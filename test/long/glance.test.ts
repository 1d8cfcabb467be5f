/** The embedded model that sees on WebGPU, made of software, which takes minutes. */
import { expect, test } from 'vitest'
import { fetchIn } from '../support/requests.ts'
import { defineDrawings, type Drawings } from '../support/drawings.ts'
import { openSite, serveIn } from '../support/site.ts'

interface InPage {
  drawings: Drawings
  server: import('../../src/index.ts').Server
}

const TAG = '@inorigin/glance'

/** Returns the answers to a question about each drawing, on a device of an origin that is new. */
async function see(device: 'wasm' | 'webgpu', names: readonly (keyof Drawings)[]) {
  const site = await openSite()
  try {
    const page = await site.open()
    await serveIn(page, { device })
    await page.evaluate(defineDrawings)
    const answers: string[] = []
    for (const name of names) {
      const { url } = await page.evaluate(
        (which) => (globalThis as unknown as InPage).drawings[which](),
        name,
      )
      const content = [
        { type: 'image_url', image_url: { url } },
        { type: 'text', text: 'What do you see?' },
      ]
      const body = { model: TAG, temperature: 0, messages: [{ role: 'user', content }] }
      const { text } = await fetchIn(page, '/v1/chat/completions', body)
      const { choices } = JSON.parse(text) as { choices: { message: { content: string } }[] }
      answers.push(choices[0]?.message.content ?? '')
    }
    const states = await page.evaluate(() => (globalThis as unknown as InPage).server.models.list())
    expect(states.find(({ tag }) => tag === TAG)).toMatchObject({ status: 'loaded', device })
    return answers
  } finally {
    await site.close()
  }
}

test('on WebGPU it sees the same as on WASM', { timeout: 900_000 }, async () => {
  const names = ['shapes', 'word'] as const
  expect(await see('webgpu', names)).toEqual(await see('wasm', names))
})
