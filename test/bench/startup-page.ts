/** What the bench of second visits runs inside the page. */
import type { serve } from '../../src/index.ts'
import { ASK, CHANNEL, readTimes, type OwnTimes, type Report } from './startup-times.ts'

/** The host worker and the model worker. */
const WORKERS = 2
/**
 * Milliseconds that the first visit lasts after its answer. The browser caches compiled code when no
 * more of it was added for 2 s.
 */
const STAY_MS = 5_000

/** Asks for one answer and reports the times of all threads to the web server. */
export async function visit(start: typeof serve): Promise<void> {
  const query = new URLSearchParams(location.search)
  performance.mark('script')
  const report = await answer(start, query.has('isolate')).then(
    (threads): Report => ({ threads }),
    (error: unknown): Report => ({ error: String(error), threads: [] }),
  )
  if (query.has('first')) await new Promise((resolve) => setTimeout(resolve, STAY_MS))
  await fetch('/report', { method: 'POST', body: JSON.stringify(report) })
}

async function answer(start: typeof serve, isolate: boolean): Promise<OwnTimes[]> {
  await start({ device: 'wasm', isolate })
  performance.mark('served')
  const { body } = await fetch('/v1/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model: '@inorigin/guide',
      messages: [{ role: 'user', content: 'What is inorigin?' }],
      stream: true,
      max_tokens: 64,
    }),
  })
  const reader = body!.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  let hasToken = false
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    text += value
    if (!hasToken && /"content":"[^"]/.test(text)) performance.mark('first token')
    hasToken ||= /"content":"[^"]/.test(text)
  }
  if (!hasToken) throw new Error(`There is no token in ${text}`)
  return [readTimes(), ...(await askWorkers())]
}

function askWorkers(): Promise<OwnTimes[]> {
  const channel = new BroadcastChannel(CHANNEL)
  const answers: OwnTimes[] = []
  return new Promise((resolve) => {
    channel.onmessage = ({ data }: MessageEvent<OwnTimes>) => {
      answers.push(data)
      if (answers.length === WORKERS) resolve(answers)
    }
    channel.postMessage(ASK)
  })
}
