/** A model of a GGUF file in a worker of a page: the tokens that it finds best. */
import { type LoadedDecoder } from '../../src/engine/decoder-engine.ts'
import type { Logits, Sequence } from '../../src/engine/decoder.ts'
import { loadDecoder } from '../../src/engine/onnx/load.ts'
import type { Device, Precision } from '../../src/types/index.ts'

/** Asked of the worker; every order is answered by one message. */
export type Order =
  | {
      type: 'open'
      /** Path of the file on the site. */
      path: string
      device: Device
      precision: Precision
      threads: number
      /** Greatest number of tokens of a sequence. */
      contextTokens: number
    }
  /** Finds the best token in place of each token of an answer, after the same tokens. */
  | { type: 'judge'; prompt: readonly number[]; answer: readonly number[] }
  /** Writes as many tokens, always the best one, each in a run of its own. */
  | { type: 'write'; prompt: readonly number[]; count: number }

/** Answer to an order: milliseconds of the load, or tokens. */
export type Answer<T extends Order['type']> = T extends 'open' ? number : number[]

/** Rows of logits in one run: those of large vocabularies take a MiB each. */
const ROWS = 16

const { signal } = new AbortController()
let loaded: LoadedDecoder

async function open({ path, device, precision, threads, contextTokens }: Order & { type: 'open' }) {
  const file = await (await fetch(path)).blob()
  const begin = performance.now()
  const runtime = `${location.origin}/inorigin/ort/`
  const setup = { device, precision, threads, runtime, contextWindow: contextTokens }
  loaded = await loadDecoder(
    { ...setup, firstPosition: 0 },
    new Map([['model.gguf', file]]),
    signal,
  )
  return performance.now() - begin
}

/** Returns the best token of each row, and frees the logits. */
async function bestOf(logits: Logits): Promise<number[]> {
  const asks = Array.from({ length: logits.rows }, () => ({ count: 1, temperature: 0 }))
  const best = (await logits.top(asks)).map(({ ids }) => ids[0] ?? NaN)
  logits.release()
  return best
}

/** Opens a sequence for that many tokens. */
function openFor(tokens: number): Sequence {
  const { decoder } = loaded
  return decoder.open(tokens > (decoder.maxShortLength ?? Infinity))
}

async function extend(sequence: Sequence, tokens: readonly number[]): Promise<void> {
  for (let from = 0; from < tokens.length;) {
    const most = sequence.maxChunkTokens ?? loaded.decoder.maxChunkTokens
    await sequence.extend(tokens.slice(from, from + most))
    from += most
  }
}

async function judge(prompt: readonly number[], answer: readonly number[]): Promise<number[]> {
  const sequence = openFor(prompt.length + answer.length)
  try {
    await extend(sequence, prompt.slice(0, -1))
    // Each token of the answer is the one after these.
    const before = [...prompt.slice(-1), ...answer.slice(0, -1)]
    const rows = Math.min(ROWS, loaded.decoder.maxRows ?? ROWS)
    const best: number[] = []
    for (let from = 0; from < before.length; from += rows) {
      const tokens = before.slice(from, from + rows)
      best.push(...(await bestOf(await sequence.forward(tokens, tokens.length))))
    }
    return best
  } finally {
    sequence.close()
  }
}

async function write(prompt: readonly number[], count: number): Promise<number[]> {
  const { decoder } = loaded
  const sequence = openFor(prompt.length + count)
  try {
    await extend(sequence, prompt.slice(0, -1))
    const written = await bestOf(await sequence.forward(prompt.slice(-1)))
    while (written.length < count) {
      const token = written.at(-1) ?? NaN
      written.push(...(await bestOf(await decoder.step([{ sequence, token }]))))
    }
    return written
  } finally {
    sequence.close()
  }
}

function obey(order: Order): Promise<number | number[]> {
  switch (order.type) {
    case 'open':
      return open(order)
    case 'judge':
      return judge(order.prompt, order.answer)
    case 'write':
      return write(order.prompt, order.count)
  }
}

self.onmessage = ({ data }: MessageEvent<Order>) => {
  obey(data).then(
    (answer) => self.postMessage({ answer }),
    (error: unknown) =>
      self.postMessage({ error: error instanceof Error ? error.stack : String(error) }),
  )
}
