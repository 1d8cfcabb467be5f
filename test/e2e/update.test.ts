/**
 * A page meets a service worker of another version of the library.
 *
 * @module-tag slow
 */
import { readFileSync } from 'node:fs'
import { afterEach, expect, test } from 'vitest'
import type { Page } from 'playwright'
import type { Server } from '../../src/index.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

let site: Site

afterEach(() => site?.close())

/** The built script, speaking another protocol. */
function otherProtocol(): string {
  const script = readFileSync('dist-demo/sw.js', 'utf8')
  const changed = script.replaceAll(/protocol:\s?1\b/g, 'protocol:0')
  expect(changed).not.toBe(script)
  return changed
}

function look(page: Page): Promise<{ controlled: boolean; direct: number; first: string }> {
  return page.evaluate(async () => {
    const { server } = globalThis as unknown as { server: Server }
    const direct = await server.fetch('/v1/models')
    const { data } = await direct.json()
    return { controlled: server.controlled, direct: direct.status, first: data[0].id }
  })
}

test('another protocol: server.fetch serves until the script is replaced', async () => {
  site = await openSite({ pages: { '/sw.js': otherProtocol() } })
  const page = await site.open()
  const warnings: string[] = []
  page.on('console', (message) => message.type() === 'warning' && warnings.push(message.text()))
  await serveIn(page)
  expect(await look(page)).toEqual({ controlled: false, direct: 200, first: '@inorigin/guide' })
  expect(warnings.join()).toContain('server.fetch')

  delete site.pages['/sw.js']
  await page.reload()
  await serveIn(page)
  expect(await look(page)).toEqual({ controlled: true, direct: 200, first: '@inorigin/guide' })
  expect(await page.evaluate(async () => (await fetch('/v1/models')).status)).toBe(200)
})

/** A stream of the page whose first piece has arrived. */
interface OpenStream {
  reader: ReadableStreamDefaultReader<string>
  text: string
  /** Promise that resolves when the page has asked whether a new script may take over. */
  asked: Promise<void>
}

test('a new script of the same protocol takes over only when nothing streams', async () => {
  // The model comes late, so that the stream is open for that long.
  const late = () => site.reports.length > 0
  site = await openSite({ slow: { '/inorigin/models/guide/onnx/model.onnx': late } })
  const page = await site.open()
  await serveIn(page)
  await page.evaluate(async () => {
    const response = await fetch('/v1/messages', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        model: '@inorigin/guide',
        stream: true,
        max_tokens: 40,
        messages: [{ role: 'user', content: 'What is inorigin?' }],
      }),
    })
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    const text = (await reader.read()).value ?? ''
    // The page asks the active worker at intervals whether the new script may take over.
    const asked = new Promise<void>((resolve) => {
      const post = ServiceWorker.prototype.postMessage
      let looks = 0
      ServiceWorker.prototype.postMessage = function (this: ServiceWorker, ...given: unknown[]) {
        if ((given[0] as { type?: string }).type === 'inorigin:status' && ++looks === 2) resolve()
        Reflect.apply(post, this, given)
      }
    })
    Object.assign(globalThis, { open: { reader, text, asked } satisfies OpenStream })
  })
  // The browser looks for a new script by itself, too, so it must not find one before the stream is open.
  site.pages['/sw.js'] = `${readFileSync('dist-demo/sw.js', 'utf8')}\n// a later build`
  const seen = await page.evaluate(async () => {
    const { open } = globalThis as unknown as { open: OpenStream }
    const registration = await navigator.serviceWorker.ready
    const before = registration.active
    await registration.update()
    await open.asked
    const waited = registration.active === before && registration.waiting !== null
    await fetch('/report', { method: 'POST', body: 'waited' })
    let { text } = open
    for (let next = await open.reader.read(); !next.done; next = await open.reader.read())
      text += next.value
    const whole = text.includes('message_stop')
    const { serviceWorker } = navigator
    if (registration.active === before) {
      await new Promise((resolve) => serviceWorker.addEventListener('controllerchange', resolve))
    }
    return { waited, whole, status: (await fetch('/v1/models')).status }
  })
  expect(seen).toEqual({ waited: true, whole: true, status: 200 })
})
