/** What the bench runs inside the page: the same decode through the endpoint and through the engine. */
import OpenAI from 'openai'
import type { Catalog, serve } from '../../src/index.ts'

/** One decode, the same on either side. */
export interface Wish {
  seed: number
  maxTokens: number
}

export interface Timing {
  text: string
  tokens: number
  /** From the first text to the last. */
  milliseconds: number
}

export interface Bench {
  /** Tokens per second of one decode through `fetch`, the stream and the OpenAI SDK. */
  endpoint(wish: Wish): Promise<Timing>
  /** The same of the engine alone. */
  engine(wish: Wish): Promise<Timing>
  /** Milliseconds to the headers of one request. */
  headers(): Promise<number>
}

const MODEL = '@bench/endless'
/** What both sides are asked. */
export const QUESTION = 'What is inorigin?'

/** Brings up the server and the engine beside it, both on WASM, and warms them. */
export async function openBench(start: typeof serve): Promise<Bench> {
  const server = await start({ device: 'wasm', catalog: '/bench/catalog.json' })
  const openai = new OpenAI({
    baseURL: server.baseURL,
    apiKey: 'none',
    dangerouslyAllowBrowser: true,
  })
  const worker = new Worker('/bench/engine-worker.js', { type: 'module' })
  const tell = <T>(order: object) =>
    new Promise<T>((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data as T)
      worker.onerror = (event) => reject(new Error(event.message))
      worker.postMessage(order)
    })
  await tell({
    type: 'open',
    files: await fetchFiles(),
    runtime: `${location.origin}/inorigin/ort/`,
  })
  await server.models.load(MODEL)

  return {
    async endpoint({ seed, maxTokens }) {
      const stream = await openai.chat.completions.create({
        model: MODEL,
        messages: [{ role: 'user', content: QUESTION }],
        max_tokens: maxTokens,
        temperature: 1,
        seed,
        stream: true,
        stream_options: { include_usage: true },
      })
      let [first, last, tokens, text] = [0, 0, 0, '']
      for await (const { choices, usage } of stream) {
        const piece = choices[0]?.delta.content ?? ''
        if (piece !== '') {
          last = performance.now()
          first ||= last
          text += piece
        }
        tokens = usage?.completion_tokens ?? tokens
      }
      return { text, tokens, milliseconds: last - first }
    },
    engine: (wish) => tell<Timing>({ type: 'run', wish }),
    async headers() {
      const begin = performance.now()
      const response = await fetch('/v1/chat/completions', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          model: MODEL,
          messages: [{ role: 'user', content: QUESTION }],
          max_tokens: 1,
          stream: true,
        }),
      })
      const milliseconds = performance.now() - begin
      await response.text()
      return milliseconds
    },
  }
}

/** The model's files as the catalog lists them. */
async function fetchFiles(): Promise<Map<string, Blob>> {
  const catalog = (await (await fetch('/bench/catalog.json')).json()) as Catalog
  const resources = catalog.entries[0]?.implementations?.[0]?.resources ?? []
  const files = new Map<string, Blob>()
  for (const { name, url } of resources) {
    files.set(name, await (await fetch(new URL(url, `${location.origin}/bench/`))).blob())
  }
  return files
}
