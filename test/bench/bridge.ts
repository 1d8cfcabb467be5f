/** What a response carries through a tab: from a page over the WebSocket to a client of the command. */
import type { Page } from 'playwright'
import type { LentServer } from '../../src/bridge/lend.ts'
import { startBridge, TOKEN } from '../support/bridge-command.ts'
import { bundleScript } from '../support/sdks.ts'
import { openSite } from '../support/site.ts'
import { median, reported, type Figure } from './figure.ts'

/** Rounds that are counted. The first one warms everything up. */
const ROUNDS = 7
const MIB = 2 ** 20
const BULK = { bytes: 32 * MIB, piece: 2 ** 16 }
/** Pieces as short as the event of one token. */
const EVENTS = { bytes: 4 * MIB, piece: 2 ** 8 }

interface InPage {
  lending: typeof import('../../src/bridge/lend.ts')
}

/** Measures the bytes per second of a long response, and the short pieces per second of another. */
export async function measureBridge(): Promise<Figure[]> {
  const script = await bundleScript('../../src/bridge/lend.ts', 'lending')
  const site = await openSite({ pages: { '/lending.js': script } })
  const command = await startBridge()
  try {
    await lendStreams(await site.open(), command.url)
    const bulk = await measureRate(command.url, BULK)
    const events = await measureRate(command.url, EVENTS)
    return [
      reported('bridge_mib_per_s', bulk / MIB, `pieces of 64 KiB, median of ${ROUNDS}`),
      reported('bridge_pieces_per_s', events / EVENTS.piece, 'pieces of 256 bytes'),
    ]
  } finally {
    await command.end()
    await site.close()
  }
}

/** Lends the page with responses of the length and pieces that the query of a request names. */
async function lendStreams(page: Page, url: string): Promise<void> {
  await page.addScriptTag({ url: '/lending.js' })
  await page.evaluate(
    async ([address, token]) => {
      const { lending } = globalThis as unknown as InPage
      const server: LentServer = {
        origin: location.origin,
        closing: new AbortController().signal,
        async fetch(request) {
          const { searchParams } = new URL(request.url)
          const bytes = new Uint8Array(Number(searchParams.get('piece')))
          let left = Number(searchParams.get('bytes'))
          const body = new ReadableStream<Uint8Array>({
            pull(controller) {
              controller.enqueue(bytes)
              left -= bytes.length
              if (left <= 0) controller.close()
            },
          })
          return new Response(body)
        },
      }
      await lending.lend(address, { token }, server)
    },
    [url, TOKEN] as const,
  )
}

/** Resolves with the median of bytes per second. */
async function measureRate(
  url: string,
  { bytes, piece }: { bytes: number; piece: number },
): Promise<number> {
  const rates: number[] = []
  for (let round = 0; round <= ROUNDS; round += 1) {
    const began = performance.now()
    const response = await fetch(`${url}/v1/models?bytes=${bytes}&piece=${piece}`)
    let received = 0
    for await (const part of response.body ?? []) received += part.length
    if (received !== bytes) throw new Error(`${received} bytes arrived, not ${bytes}.`)
    if (round > 0) rates.push((bytes / (performance.now() - began)) * 1_000)
  }
  return median(rates)
}
