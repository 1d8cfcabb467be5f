/** The life of the service worker, which some browsers stop after 30 s of silence. */
import { describe, expect, test } from 'vitest'
import { checkLifetime, SLOW_FILE, watchLifetime } from '../support/lifetime.ts'
import { ENGINES, useEngine } from './setting.ts'

const LOADING_MS = 45_000

describe.each(ENGINES)('$name', (engine) => {
  const { openSite, serve } = useEngine(engine)

  test('streams of 45 s arrive whole, then an idle service worker answers', async () => {
    await openSite({ slow: { [SLOW_FILE]: LOADING_MS } })
    checkLifetime(await watchLifetime(await serve()), LOADING_MS, expect)
  })
})
