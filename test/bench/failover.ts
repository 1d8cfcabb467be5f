/** The pause of a stream whose host tab is closed, beside the time that its model takes to load. */
import type { Page } from 'playwright'
import type { Server } from '../../src/index.ts'
import { ask, findPause } from '../support/requests.ts'
import { openTokenFault } from '../support/fault-at-token.ts'
import { bodyOf } from '../support/generation-cases.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'
import { atMost, median, printTable, reported, type Figure } from './figure.ts'

/** Streams that are interrupted. */
const ROUNDS = 7
/** Tokens of an answer, and those after which the host dies. */
const TOKENS = 200
const DEATH_AFTER = 100
/** Milliseconds that a failover may take in addition to the load. */
const BAR_MS = 1_500

/** Milliseconds of one round. */
interface Round {
  /** From the closing of the tab to the next token. */
  pause: number
  /** From the request of a load to its end, in a new model worker of the next host. */
  load: number
}

/** Measures how long a stream pauses when the tab that computes it is closed. */
export async function measureFailover(): Promise<Figure[]> {
  const fault = await openTokenFault()
  const site = await openSite({
    ownBrowser: true,
    pages: { '/inorigin/model-worker.js': fault.script },
  })
  try {
    await site.context.exposeFunction('reached', () => undefined)
    let host = await openHost(site)
    const asker = await site.open()
    const rounds: Round[] = []
    for (let count = 0; count < ROUNDS; count += 1) {
      const next = await openHost(site)
      const reached = fault.at(DEATH_AFTER)
      const pause = await interrupt(asker, host, reached)
      rounds.push({ pause, load: await measureLoad(next) })
      host = next
    }
    return toFigures(rounds)
  } finally {
    await site.close()
    await fault.close()
  }
}

async function openHost(site: Site): Promise<Page> {
  const page = await site.open()
  await serveIn(page, { device: 'wasm' })
  return page
}

/** Closes the host in the middle of a stream. Resolves with the milliseconds to the next token. */
async function interrupt(asker: Page, host: Page, reached: Promise<void>): Promise<number> {
  const answer = ask(asker, {
    style: 'chat',
    body: bodyOf('chat', 'sampled', TOKENS, 7),
    stream: true,
    client: 'fetch',
    frames: null,
    abortAfter: null,
  })
  await reached
  const closedAt = Date.now()
  await host.close()
  const { arrivals, end } = await answer
  const pause = findPause(arrivals, closedAt)
  if (end !== 'done' || pause === null) throw new Error(`The stream was not interrupted: ${end}`)
  return pause
}

async function measureLoad(page: Page): Promise<number> {
  return page.evaluate(async () => {
    const { server } = globalThis as unknown as { server: Server }
    await server.models.unload('@inorigin/guide')
    const start = performance.now()
    await server.models.load('@inorigin/guide')
    return performance.now() - start
  })
}

function toFigures(rounds: readonly Round[]): Figure[] {
  printTable([
    ['failover', 'pause ms', 'load ms'],
    ...rounds.map(({ pause, load }, index) => [
      `stream ${index + 1}`,
      pause.toFixed(0),
      load.toFixed(0),
    ]),
  ])
  const pause = median(rounds.map((round) => round.pause))
  const rest = median(rounds.map((round) => round.pause - round.load))
  return [
    reported('failover_ms', pause, 'from the closing of the host tab to the next token, WASM'),
    atMost('failover_beside_load_ms', rest, BAR_MS, 'the same less the load of the model'),
  ]
}
