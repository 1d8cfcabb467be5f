/** The engine in a worker of a page, with or without drafts, which `/v1` does not let a test choose on WASM. */
import { openDecoderEngine } from '../../src/engine/decoder-engine.ts'
import { loadDecoder } from '../../src/engine/onnx/load.ts'
import type { Files } from '../../src/engine/engine.ts'

/** Orders exact answers of a model on WASM. */
export interface EngineOrder {
  /** URLs of the model's files by name; those of a file in parts are in their order. */
  files: Readonly<Record<string, readonly string[]>>
  drafts: boolean
  prompts: readonly string[]
  maxTokens: number
}

export interface EngineResult {
  texts: string[]
  tokens: number
  /** Forward passes of the answers. One that verifies drafts can give several tokens. */
  passes: number
}

const { signal } = new AbortController()

async function fetchFile(urls: readonly string[]): Promise<Blob> {
  return new Blob(await Promise.all(urls.map(async (url) => (await fetch(url)).blob())))
}

async function answer({ files, drafts, prompts, maxTokens }: EngineOrder): Promise<EngineResult> {
  const fetched: [string, Blob][] = []
  for (const [name, urls] of Object.entries(files)) fetched.push([name, await fetchFile(urls)])
  const isWeights = ([name]: [string, Blob]): boolean => name.endsWith('.gguf')
  const texts: Files = new Map(fetched.filter((file) => !isWeights(file)))
  const constraints = `${location.origin}/inorigin/`
  const setup = { device: 'wasm', precision: 'exact', constraints, maxInputTokens: 2_048 } as const
  let passes = 0
  const engine = await openDecoderEngine(
    { ...setup, runtime: `${constraints}ort/`, threads: 2, texts },
    {
      drafts,
      async load(...given) {
        const loaded = await loadDecoder(...given)
        const { decoder } = loaded
        const [open, step] = [decoder.open.bind(decoder), decoder.step.bind(decoder)]
        decoder.step = (entries) => {
          passes += 1
          return step(entries)
        }
        decoder.open = (isLong) => {
          const sequence = open(isLong)
          const forward = sequence.forward.bind(sequence)
          sequence.forward = (tokens, rows) => {
            passes += 1
            return forward(tokens, rows)
          }
          return sequence
        }
        return loaded
      },
    },
  )
  await engine.load(new Map(fetched.filter(isWeights)), signal)
  const result: EngineResult = { texts: [], tokens: 0, passes: 0 }
  for (const content of prompts) {
    const prompt = engine.prepare({ messages: [{ role: 'user', content }] })
    const options = { maxTokens, sampling: { temperature: 0, seed: 1 }, signal }
    let text = ''
    for await (const piece of engine.generate(prompt, options)) {
      text += piece.text
      result.tokens += piece.tokens
    }
    result.texts.push(text)
  }
  await engine.close()
  return { ...result, passes }
}

self.onmessage = ({ data }: MessageEvent<EngineOrder>) => {
  answer(data).then(
    (result) => self.postMessage({ result }),
    (error: unknown) =>
      self.postMessage({ error: error instanceof Error ? error.stack : String(error) }),
  )
}
