/** What the bench of second visits runs inside the page. */
import type { serve } from '../../src/index.ts'
import { ASK, CHANNEL, readTimes, sendReport, type OwnTimes } from './startup-times.ts'

/** The host worker and the model worker. */
const WORKERS = 2

/** Asks for one answer and reports the times of all threads to the web server. */
export async function visit(start: typeof serve): Promise<void> {
  performance.mark('script')
  await sendReport(answer(start, new URLSearchParams(location.search).has('isolate')))
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
