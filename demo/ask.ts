/**
 * `npm run ask -- "What is inorigin?"`: opens the playground in a headless Chromium, asks a
 * question through its `/v1`, and prints the answer as it arrives. Only the answer goes to stdout.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { chromium, type Page } from 'playwright'
import { chromiumLaunch } from '../test/setup/chromium.ts'
import { serveDemo } from '../test/setup/demo.ts'
import type { LoadProgress, Server } from '../src/index.ts'
import { bytes, bytesOf } from './format.ts'
import { withSystem } from './smollm2.ts'
import { receive, type Answer } from './wire/answer.ts'
import { completions } from './wire/completions.ts'
import { messages } from './wire/messages.ts'
import { summary } from './wire/summary.ts'

const ROOT = join(import.meta.dirname, '..')
const STYLES = { completions, messages }
const USAGE =
  'npm run ask -- "What is inorigin?" [--model TAG] [--image FILE]... [--device webgpu|wasm] ' +
  '[--style completions|messages] [--url URL]'

/** Window of the page, for functions that run inside it. */
interface AskedWindow extends Window {
  inorigin?: Server
  tellProgress: (progress: LoadProgress) => void
  tellNews: (news: News) => Promise<void>
}

/** Message of the page about a response: its headers first, then pieces of its text. */
type News = { status: number; headers: Record<string, string> } | { text: string }

/** Answer of `GET /v1/models`. */
interface ModelList {
  data: { id: string; capabilities?: { image_input?: { supported?: boolean } } | null }[]
}

interface Wish {
  question: string
  device: string
  style: keyof typeof STYLES
  /** Tag of the model; if it is `undefined`, the first one of the listing that takes what is asked. */
  model: string | undefined
  /** Images to ask about, as data URLs. */
  images: string[]
  /** URL of a playground that is already served. */
  url: string | undefined
}

function readArguments(): Wish {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      device: { type: 'string', default: 'auto' },
      image: { type: 'string', multiple: true, default: [] },
      model: { type: 'string' },
      style: { type: 'string', default: 'completions' },
      url: { type: 'string' },
    },
  })
  const { device, style, model, url } = values
  const question = positionals.join(' ').trim()
  if (question === '') throw new Error('Pass a question.')
  if (!['auto', 'webgpu', 'wasm'].includes(device)) throw new Error(`Unknown device "${device}".`)
  if (style !== 'completions' && style !== 'messages') throw new Error(`Unknown style "${style}".`)
  return { question, device, style, model, images: values.image.map(toDataUrl), url }
}

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.gif': 'image/gif',
  '.webp': 'image/webp',
}

/** Reads an image file. Throws an error for a file whose name has another ending. */
function toDataUrl(path: string): string {
  const type = MEDIA_TYPES[extname(path).toLowerCase()]
  if (!type) throw new Error(`${path} is not named .png, .jpg, .gif or .webp.`)
  return `data:${type};base64,${readFileSync(path, 'base64')}`
}

async function main(asked: Wish): Promise<void> {
  const { device, url } = asked
  const demo = url === undefined ? await serveBuilt() : undefined
  try {
    const browser = await chromium.launch(chromiumLaunch())
    try {
      const page = await browser.newPage()
      await open(page, new URL(`?device=${device}`, url ?? demo?.url))
      await ask(page, asked)
    } finally {
      await browser.close()
    }
  } finally {
    await demo?.close()
  }
}

async function serveBuilt(): ReturnType<typeof serveDemo> {
  if (!existsSync(join(ROOT, 'dist-demo/sw.js'))) {
    say('Building the playground ...\n')
    const vite = join(ROOT, 'node_modules/vite/bin/vite.js')
    execFileSync(process.execPath, [vite, 'build'], { cwd: ROOT, stdio: ['ignore', 2, 2] })
  }
  return serveDemo()
}

/** Opens the playground and waits for its server. */
async function open(page: Page, url: URL): Promise<void> {
  progress('Starting the server in the page ...')
  await page.goto(url.href)
  const failed = page.locator('.notice.bad p').first()
  const started = (): boolean => (window as unknown as AskedWindow).inorigin !== undefined
  const server = page.waitForFunction(started, undefined, { timeout: 60_000 })
  const outcome = await Promise.race([server, failed.waitFor({ timeout: 60_000 })])
  if (!outcome) throw new Error((await failed.textContent()) ?? 'The server did not start.')
}

async function ask(page: Page, { question, style: name, model: tag, images }: Wish): Promise<void> {
  const { baseURL, listed } = await page.evaluate(async () => {
    const { inorigin: server } = window as unknown as AskedWindow
    if (!server) throw new Error('The server has stopped.')
    const { data } = (await (await fetch(`${server.baseURL}/models`)).json()) as ModelList
    return { baseURL: server.baseURL, listed: data }
  })
  const seeing = listed.find(({ capabilities }) => capabilities?.image_input?.supported)
  const model = tag ?? (images.length > 0 ? seeing : undefined)?.id ?? String(listed[0]?.id)
  await load(page, model)
  const style = STYLES[name]
  const request = style.request({
    model,
    history: [],
    question,
    images,
    settings: withSystem(model, {}),
  })
  const answer: Answer = { style, url: `${baseURL}/${request.path}`, request, raw: '', text: '' }
  let printed = 0
  const print = (): void => {
    process.stdout.write(answer.text.slice(printed))
    printed = answer.text.length
  }
  const never = new AbortController().signal
  try {
    await receive(answer, await fetchIn(page), never, print)
  } finally {
    if (printed > 0) process.stdout.write('\n')
  }
  if (process.stderr.isTTY) say(`${summary(answer)}\n`)
}

/** Loads the model and shows its progress. */
async function load(page: Page, model: string): Promise<void> {
  await page.exposeFunction('tellProgress', (at: LoadProgress) => {
    const speed = at.bytesPerSecond > 0 ? `, ${bytes(at.bytesPerSecond)}/s` : ''
    const download = `Downloading ${at.tag}: ${bytesOf(at.loadedBytes, at.totalBytes)}${speed}`
    progress(at.phase === 'download' ? download : `Preparing ${at.tag} ...`)
  })
  await page.evaluate(async (tag) => {
    const { inorigin: server, tellProgress } = window as unknown as AskedWindow
    await server?.models.load(tag, { onProgress: tellProgress })
  }, model)
  progress('')
}

/** Returns the `fetch` of the page for this process. The response arrives here piece by piece. */
async function fetchIn(page: Page): Promise<typeof fetch> {
  const { readable, writable } = new TransformStream<string, string>()
  const writer = writable.getWriter()
  let begin: (response: Response) => void
  const response = new Promise<Response>((resolve) => (begin = resolve))
  await page.exposeFunction('tellNews', (news: News) => {
    if ('text' in news) return void writer.write(news.text).catch(() => {})
    begin(new Response(readable.pipeThrough(new TextEncoderStream()), news))
  })
  return async (input, init) => {
    const { method, headers, body } = init ?? {}
    const request = { url: String(input), init: { method, headers, body } as RequestInit }
    const over = page.evaluate(async (sent) => {
      const { tellNews } = window as unknown as AskedWindow
      const answer = await fetch(sent.url, sent.init as RequestInit)
      await tellNews({ status: answer.status, headers: Object.fromEntries(answer.headers) })
      const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader()
      for (let part = await reader?.read(); part?.value; part = await reader?.read()) {
        await tellNews({ text: part.value })
      }
    }, request)
    const whole = over.then(
      () => writer.close(),
      (error: unknown) => writer.abort(error),
    )
    whole.catch(() => {})
    return Promise.race([response, over.then(() => response)])
  }
}

function say(text: string): void {
  process.stderr.write(text)
}

/** Replaces the last line of progress, if stderr is a terminal. */
function progress(text: string): void {
  if (process.stderr.isTTY) say(`\r\u001b[K${text}`)
}

let wish: Wish | undefined
try {
  wish = readArguments()
  await main(wish)
} catch (error) {
  progress('')
  const what = error instanceof Error ? error.message : String(error)
  say(wish ? `The answer failed: ${what}\n` : `${what}\nUsage: ${USAGE}\n`)
  process.exitCode = 1
}
