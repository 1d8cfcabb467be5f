/** The command `inorigin bridge`. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { InoriginError } from '../../error.ts'
import * as chromium from '../bridge/chromium.ts'
import { openBridgeServer, openPageFiles } from '../bridge/http-server.ts'
import type { Tab } from '../bridge/tab.ts'
import {
  createUsageError,
  deferInterrupts,
  defineCommand,
  flag,
  parserOf,
  repeated,
  valued,
} from '../command.ts'
import { print, printLines } from '../output.ts'
import { DIST, findRuntime } from '../library-files.ts'

const DEFAULT_PORT = 11435
const MAX_PORT = 65_535

/** Environment variable with a token that stays the same, so that clients can keep it. */
const TOKEN_VARIABLE = 'INORIGIN_BRIDGE_TOKEN'
const TOKEN_BYTES = 24

export const BRIDGE = defineCommand({
  name: 'bridge',
  operands: [],
  usage: '[--port <n>] [--open | --headless] [options]',
  about: [
    'Lets programs of this machine use a browser tab as a model server: answers /v1 at',
    'http://127.0.0.1 by a tab that connects. Without --open and --headless, it waits for a page',
    'that calls server.bridge(). It runs until it is interrupted. The environment variable',
    `${TOKEN_VARIABLE} sets the token; otherwise it is random.`,
  ],
  options: {
    port: valued('<n>', `Port (default: ${DEFAULT_PORT})`),
    open: flag('Open a page in your browser that lends itself'),
    headless: flag('Start a headless Chromium with that page'),
    profile: valued(
      '<folder>',
      'Profile of that Chromium, which keeps models (default: in ~/.cache/inorigin)',
    ),
    'require-key': flag('Answer only clients whose API key is the token'),
    origin: repeated(
      '<origin>',
      'Allow web pages of this origin to send requests (CORS); may be repeated',
    ),
  },
  async run(flags) {
    const { open = false, headless = false, 'require-key': requireKey = false } = flags
    if (open && headless) throw createUsageError('Pass --open or --headless, not both.')
    const program = headless ? chromium.findChromium() : null
    const interrupted = deferInterrupts()
    const token = readToken()
    const server = await openBridgeServer({
      port: flags.port === undefined ? DEFAULT_PORT : parsePort('--port', flags.port),
      token,
      requireKey,
      origins: (flags.origin ?? []).map((text) => parseOrigin('--origin', text)),
      files: openPageFiles(DIST, findRuntime()),
      onTab: reportTab,
    })
    const page = `${server.url}/#token=${token}`
    printLines(
      `The bridge listens at ${server.url}/v1.`,
      `API key of clients: ${requireKey ? token : 'any'}`,
      `Page that lends itself: ${page}`,
      `In your own page: server.bridge('${server.url}', { token: '${token}' })`,
    )
    try {
      if (program !== null) {
        const profile = flags.profile ?? chromium.getProfileFolder(Number(new URL(server.url).port))
        await runChromium(program, profile, page, interrupted)
      } else if (open) await openUntilInterrupted(page, interrupted)
      else await waitForAbort(interrupted)
    } finally {
      await server.close()
    }
    throw new InoriginError('aborted', 'The bridge was interrupted.')
  },
})

function reportTab(tab: Tab): void {
  const { gpu, threads } = tab.capability
  const device = gpu === 'hardware' ? 'WebGPU' : `WASM with ${threads} threads`
  printLines(`A tab of ${tab.origin} is connected: ${device}.`)
  void tab.closed.then(() => printLines(`A tab of ${tab.origin} has left.`))
}

async function runChromium(
  program: string,
  profile: string,
  page: string,
  interrupted: AbortSignal,
): Promise<void> {
  if (chromium.isRoot()) {
    const why = 'root runs it. Models and web pages are not isolated from your files'
    print(process.stderr, [`Warning: Chromium runs without its sandbox, because ${why}.`])
  }
  const browser = chromium.startChromium(program, profile, page)
  const code = await Promise.race([browser.ended, waitForAbort(interrupted)])
  await browser.close()
  if (interrupted.aborted) return
  const todo = 'Close other browsers of the same profile, or pass another --profile.'
  throw new InoriginError('unavailable', `${program} ended with code ${code}. ${todo}`)
}

async function openUntilInterrupted(page: string, interrupted: AbortSignal): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'inorigin-bridge-'))
  chromium.openInBrowser(chromium.writeStartPage(folder, page))
  await waitForAbort(interrupted)
  rmSync(folder, { recursive: true, force: true })
}

const waitForAbort = (signal: AbortSignal): Promise<null> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve(null)
    signal.addEventListener('abort', () => resolve(null), { once: true })
  })

function readToken(): string {
  const given = process.env[TOKEN_VARIABLE]
  if (!given) return randomBytes(TOKEN_BYTES).toString('base64url')
  if (/^[\w-]{16,200}$/.test(given)) return given
  const what = `${TOKEN_VARIABLE} must have 16 to 200 letters, digits, - or _.`
  throw new InoriginError('invalid_request', what)
}

const parsePort = parserOf(`a number from 0 to ${MAX_PORT}`, (text) =>
  /^\d{1,5}$/.test(text) && Number(text) <= MAX_PORT ? Number(text) : undefined,
)

const parseOrigin = parserOf('an origin such as https://example.com', (text) =>
  URL.canParse(text) && new URL(text).origin === text ? text : undefined,
)
