import type { Server } from '../src/index.ts'
import { createBar } from './bars.ts'
import { byId } from './dom.ts'
import { duration } from './format.ts'
import { createLatest } from './latest.ts'
import { wordsOf } from './notice.ts'

const MODEL = '@inorigin/embed'

/** Part of the response of `POST /v1/embeddings` that the playground reads. */
interface EmbeddingList {
  data: { embedding: number[] }[]
  usage: { total_tokens: number }
  error?: { message: string }
}

/** Creates the part for embeddings, which ranks sentences by their similarity to the first one. */
export function createLikeness(starting: Promise<Server>): void {
  const form = byId('likeness-form', HTMLFormElement)
  const first = byId('likeness-first', HTMLInputElement)
  const others = byId('likeness-others', HTMLTextAreaElement)
  const list = byId('likeness', HTMLElement)
  const said = byId('likeness-said', HTMLElement)
  const latest = createLatest()

  async function compare(): Promise<void> {
    const signal = latest.begin()
    const texts = others.value.split('\n').filter((line) => line.trim() !== '')
    said.textContent = 'Computing …'
    try {
      const server = await starting
      if (signal.aborted) return
      const start = performance.now()
      const { data, usage } = await ask(server, [first.value, ...texts], signal)
      const took = performance.now() - start
      const [wanted = [], ...vectors] = data.map(({ embedding }) => embedding)
      const alike = vectors
        .map((vector, index) => ({ text: texts[index] ?? '', near: dot(wanted, vector) }))
        .toSorted((one, other) => other.near - one.near)
      list.replaceChildren(...alike.map(row))
      const size = `${data.length} vectors of ${wanted.length} numbers`
      said.textContent = `${size} · ${usage.total_tokens} tokens · ${duration(took)}`
    } catch (error) {
      if (!signal.aborted) said.textContent = wordsOf(error)
    }
  }

  form.addEventListener('submit', (event) => {
    event.preventDefault()
    void compare()
  })
}

async function ask(server: Server, input: string[], signal: AbortSignal): Promise<EmbeddingList> {
  const send = server.controlled ? fetch : server.fetch
  const response = await send(`${server.baseURL}/embeddings`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: MODEL, input }),
    signal,
  })
  const body = (await response.json()) as EmbeddingList
  if (!response.ok)
    throw new Error(body.error?.message ?? `POST /v1/embeddings failed: ${response.status}.`)
  return body
}

function row({ text, near }: { text: string; near: number }, place: number): HTMLElement {
  const { item, show } = createBar(text, `Similarity of ${text}`)
  item.classList.toggle('best', place === 0)
  show(near)
  return item
}

/** Returns the cosine similarity of two vectors of length 1, from -1 to 1. */
function dot(one: readonly number[], other: readonly number[]): number {
  return one.reduce((sum, number, at) => sum + number * (other[at] ?? 0), 0)
}
