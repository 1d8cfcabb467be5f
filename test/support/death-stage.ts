/** Answers of 60 tokens, in every style, whose host dies after a token of the test's choice. */
import type { Page } from 'playwright'
import { ask } from './requests.ts'
import { crash, endWorker, workersOf } from './dying.ts'
import { openTokenFault } from './fault-at-token.ts'
import { bodyOf, CASES, STYLES, type Case, type Style } from './generation-cases.ts'
import { openSite, serveIn } from './site.ts'
import { toTranscript } from './transcript.ts'

/** Number of tokens of each answer. */
export const TOKENS = 60

type Way = 'tab closed' | 'renderer crashed' | 'host worker ended' | 'model worker ended'

/** A kind of answer, and a way in which its host dies. */
export interface Row {
  style: Style
  content: Case
  stream: boolean
  way: Way
}

const OTHER_WAYS: readonly Way[] = ['renderer crashed', 'host worker ended', 'model worker ended']

export const ROWS: readonly Row[] = [
  ...STYLES.flatMap((style) =>
    CASES.map((content): Row => ({ style, content, stream: true, way: 'tab closed' })),
  ),
  ...STYLES.map((style): Row => ({ style, content: 'sampled', stream: false, way: 'tab closed' })),
  ...OTHER_WAYS.map((way): Row => ({ style: 'messages', content: 'sampled', stream: true, way })),
]

export type Transcript = ReturnType<typeof toTranscript>

export interface DeathStage {
  /** Resolves with an answer whose host lives. */
  readWhole(row: Row): Promise<Transcript>
  /** Resolves with an answer whose host dies when it has sent that number of tokens. */
  readInterrupted(row: Row, tokens: number): Promise<Transcript>
  close(): Promise<void>
}

/** Opens a tab that asks and never hosts. Tabs that host are opened when they are needed. */
export async function openDeathStage(): Promise<DeathStage> {
  const fault = await openTokenFault()
  const site = await openSite({
    ownBrowser: true,
    pages: { '/inorigin/model-worker.js': fault.script },
  })
  await site.context.exposeFunction('reached', () => undefined)

  async function openHost(): Promise<Page> {
    const host = await site.open()
    await serveIn(host, { device: 'wasm' })
    return host
  }

  // The service worker runs in the renderer of the first tab, and would end with its crash.
  const registering = await openHost()
  const asker = await site.open()
  await registering.close()
  let hosts: Page[] = []

  /** Has two tabs that can host. One whose host worker ends twice in ten seconds leaves it to the other. */
  async function fillHosts(): Promise<void> {
    hosts = hosts.filter((host) => !host.isClosed())
    while (hosts.length < 2) hosts.push(await openHost())
  }

  const endHost: Readonly<Record<Way, (host: Page) => Promise<void>>> = {
    'tab closed': (host) => host.close(),
    async 'renderer crashed'(host) {
      await crash(host)
      await host.close()
    },
    'host worker ended': (host) => endWorker(workersOf(host, 'worker.js')[0]!),
    async 'model worker ended'() {
      fault.endWorker()
    },
  }

  async function readAnswer({ style, content, stream }: Row): Promise<Transcript> {
    const body = bodyOf(style, content, TOKENS, 7)
    const rest = { client: 'fetch', frames: null, abortAfter: null } as const
    const { text, end } = await ask(asker, { style, body, stream, ...rest })
    if (end !== 'done') throw new Error(`The answer ended with ${end}`)
    return toTranscript(style, text, { stream })
  }

  return {
    async readWhole(row) {
      await fillHosts()
      return readAnswer(row)
    },
    async readInterrupted(row, tokens) {
      await fillHosts()
      const reached = fault.at(tokens)
      const answer = readAnswer(row)
      await Promise.race([reached, answer])
      await endHost[row.way](hosts.find((host) => workersOf(host, 'worker.js').length > 0)!)
      return answer
    },
    async close() {
      await site.close()
      await fault.close()
    },
  }
}
