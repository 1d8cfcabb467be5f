/** The engine with nothing around it: what the endpoint is compared with. */
import { openOnnx } from '../../src/engine/onnx/index.ts'
import type { Engine, Files } from '../../src/engine/engine.ts'
import { QUESTION, type Timing, type Wish } from './page.ts'

type Order = { type: 'open'; files: Files; runtime: string } | { type: 'run'; wish: Wish }

let engine: Engine | undefined
const never = new AbortController().signal

self.onmessage = async ({ data }: MessageEvent<Order>) => {
  self.postMessage(data.type === 'open' ? await open(data) : await run(data.wish))
}

async function open({ files, runtime }: Order & { type: 'open' }): Promise<void> {
  const constraints = new URL('../', runtime).href
  const setup = {
    device: 'wasm',
    runtime,
    constraints,
    texts: files,
    maxInputTokens: 2048,
  } as const
  engine = await openOnnx(setup)
  await engine.load(files, never)
}

async function run({ seed, maxTokens }: Wish): Promise<Timing> {
  if (!engine) throw new Error('The engine is not open.')
  const prompt = engine.prepare({ messages: [{ role: 'user', content: QUESTION }] })
  const sampling = { temperature: 1, seed }
  let first = 0
  let last = 0
  let text = ''
  const pieces = engine.generate(prompt, { maxTokens, sampling, signal: never })
  for (;;) {
    const { done, value } = await pieces.next()
    if (done) return { text, tokens: value.completionTokens, milliseconds: last - first }
    last = performance.now()
    first ||= last
    text += value.text
  }
}
