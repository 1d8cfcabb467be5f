/** The Prompt API in engines that have none of their own: what pages for Chrome's model call. */
import { describe, expect, test } from 'vitest'
import type * as Api from '../../src/extras/language-model/index.ts'
import type { Server } from '../../src/index.ts'
import { BLANK } from '../support/site.ts'
import { AGENT } from '../support/tabs.ts'
import { ENGINES, GUIDE, PAGE, useEngine } from './setting.ts'

const HTML = `${BLANK}${AGENT}
<script type="module">
  import * as api from './package/language-model.js'
  Object.assign(globalThis, { api })
</script>`

interface InPage {
  api: typeof Api
  server: Server
  LanguageModel: Api.LanguageModelConstructor
}

describe.each(ENGINES)('$name', (engine) => {
  const { openSite, serve } = useEngine(engine)

  test('a session prompts, streams, is constrained, cloned, aborted and destroyed', async () => {
    await openSite({ folders: { '/package/': 'dist' }, pages: { [PAGE]: HTML } })
    const page = await serve()
    await page.waitForFunction(() => 'api' in globalThis)
    const seen = await page.evaluate(async (model) => {
      const { api, server } = globalThis as unknown as InPage
      // Without a click, create() may not download.
      await server.models.load(model)
      api.installLanguageModel({ server, model, force: true })
      const { LanguageModel } = globalThis as unknown as InPage
      const availability = await LanguageModel.availability()
      const session = await LanguageModel.create({
        initialPrompts: [{ role: 'system', content: 'Answer in one sentence.' }],
      })
      const before = session.contextUsage
      const clone = await session.clone()
      const answer = await session.prompt('What is inorigin?')
      const grows = session.contextUsage > before && session.contextUsage < session.contextWindow
      let streamed = ''
      for await (const piece of clone.promptStreaming('What is inorigin?')) streamed += piece
      const beforeLeft = clone.contextUsage
      for await (const _piece of clone.promptStreaming('Who are you?')) break
      // A prompt whose stream is left leaves no trace. This waits for the end of it.
      await clone.append([])
      const isLeft = clone.contextUsage === beforeLeft
      const rating = await clone.prompt('Rate this: "The food was cold."', {
        responseConstraint: { type: 'integer', minimum: 0, maximum: 5 },
      })
      const nameOf = (promise: Promise<unknown>) =>
        promise.then(
          () => 'nothing',
          (error: Error) => error.name,
        )
      const aborted = await nameOf(clone.prompt('Hello', { signal: AbortSignal.abort() }))
      session.destroy()
      const destroyed = await nameOf(session.prompt('Hello'))
      return { availability, answer, grows, streamed, isLeft, rating, aborted, destroyed }
    }, GUIDE)
    expect(seen).toEqual({
      availability: 'available',
      answer: expect.stringMatching(/\w/),
      grows: true,
      streamed: expect.stringMatching(/\w/),
      isLeft: true,
      rating: expect.stringMatching(/^[0-5]$/),
      aborted: 'AbortError',
      destroyed: 'AbortError',
    })
  })
})
