/** Ten minutes of streaming in each engine, without debugger and driver. */
import { describe, test } from 'vitest'
import { ENGINES, GUIDE, useEngine } from '../browsers/setting.ts'
import type { AnyPage } from '../support/any-page.ts'
import { checkChatStream } from '../support/openai-grammar.ts'
import { checkLifetime, SLOW_FILE, watchLifetime } from '../support/lifetime.ts'

const DURATION_MS = 60_000 * Number(process.env['LONG_MINUTES'] ?? 10)

interface Streams {
  texts: string[]
  /** Longest time in milliseconds between two pieces of a body. */
  longestGap: number
}

/** Reads one stream of a thousand tokens after the other, until the time is over. */
function streamOn(page: AnyPage, milliseconds: number): Promise<Streams> {
  return page.evaluate(
    async ([model, duration]) => {
      const seen: Streams = { texts: [], longestGap: 0 }
      const read = async (): Promise<string> => {
        const response = await fetch('/v1/chat/completions', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({
            model,
            messages: [{ role: 'user', content: 'Tell me all about inorigin.' }],
            seed: 7,
            temperature: 1,
            max_tokens: 1_000,
            // Forbids the guide's end token.
            logit_bias: { 2034: -100 },
            stream: true,
          }),
        })
        const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
        let text = ''
        for (let last = performance.now(); ; last = performance.now()) {
          const { done, value } = await reader.read()
          if (done) return text
          text += value
          seen.longestGap = Math.max(seen.longestGap, performance.now() - last)
        }
      }
      const end = performance.now() + duration
      while (performance.now() < end) seen.texts.push(await read())
      return seen
    },
    [GUIDE, milliseconds] as const,
  )
}

describe.concurrent.each(ENGINES)('$name', (engine) => {
  const { openSite, serve } = useEngine(engine)

  test('a stream waits ten minutes for its model, and others go on for ten minutes', async ({
    expect,
  }) => {
    // Of an origin, and so of a service worker, of its own.
    await openSite({ slow: { [SLOW_FILE]: DURATION_MS } })
    const waiting = watchLifetime(await serve())
    await openSite()
    const [streams, lifetime] = await Promise.all([streamOn(await serve(), DURATION_MS), waiting])
    checkLifetime(lifetime, DURATION_MS, expect)
    const answers = streams.texts.map((text) => checkChatStream(text))
    expect(new Set(answers.map(({ content }) => content)).size).toBe(1)
    for (const answer of answers) {
      expect(answer).toMatchObject({ error: null, finishReason: 'length' })
    }
    const frames = streams.texts.flatMap((text) => text.split('\n\n')).length
    const { longestGap } = streams
    console.log(
      JSON.stringify({ engine: engine.name, streams: answers.length, frames, longestGap }),
    )
  })
})
