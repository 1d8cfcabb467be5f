/** Our engine, with nothing around it. */
import { type LoadedDecoder, openDecoderEngine } from '../../src/engine/decoder-engine.ts'
import { loadDecoder } from '../../src/engine/onnx/load.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { readGguf, toByteSource } from '../../src/engine/gguf/header.ts'
import { toModelFiles } from '../../src/engine/gguf/model-files.ts'
import {
  contextOf,
  GGUF_MODEL,
  ggufPath,
  type ModelName,
  onnxPath,
  type OnnxFormat,
} from './models/shapes.ts'
import { serveSide } from './side.ts'

const TEXTS = [
  'config.json',
  'generation_config.json',
  'tokenizer.json',
  'tokenizer_config.json',
  'chat_template.jinja',
]
const signal = new AbortController().signal

let engine: Engine
let loaded: LoadedDecoder

async function filesOf(model: string, names: readonly string[]): Promise<Map<string, Blob>> {
  const files = new Map<string, Blob>()
  for (const name of names) {
    const response = await fetch(`/bench/models/${model}/${name}`)
    // A made model has no file for its template.
    if (response.ok) files.set(name, await response.blob())
  }
  return files
}

/** Resolves with the weights, and the texts beside them. */
async function findFiles(model: ModelName, format: string) {
  if (model !== GGUF_MODEL) {
    const graph = onnxPath(format as OnnxFormat)
    return {
      weights: await filesOf(model, [graph, `${graph}_data`]),
      texts: await filesOf(model, TEXTS),
    }
  }
  const weights = await filesOf(model, [ggufPath(GGUF_MODEL)])
  const [file] = weights.values()
  if (!file) throw new Error('There is no GGUF file.')
  const { metadata } = await readGguf(toByteSource(file))
  const made = Array.from(
    toModelFiles(metadata),
    ([name, text]) => [name, new Blob([text])] as const,
  )
  return { weights, texts: new Map(made) }
}

serveSide({
  async open({ model, format, device, precision, drafts = device === 'webgpu' }) {
    const constraints = `${location.origin}/inorigin/`
    const runtime = `${constraints}ort/`
    const { weights, texts } = await findFiles(model, format)
    const setup = {
      device,
      runtime,
      constraints,
      texts,
      maxInputTokens: contextOf(model),
      precision,
    }
    const load = async (...given: Parameters<typeof loadDecoder>) =>
      (loaded = await loadDecoder(...given))
    engine = await openDecoderEngine(setup, { load, drafts })
    await engine.load(weights, signal)
  },
  async continue(tokens, { answer, sampling }, onPiece) {
    const prompt = { tokens, boundaries: [], opening: '' }
    const options = {
      maxTokens: answer,
      sampling: { temperature: 0, seed: 1, ...sampling },
      signal,
    }
    const pieces = engine.generate(prompt, options)
    for (;;) {
      const { done, value } = await pieces.next()
      if (done) return
      onPiece(value.text, value.tokens)
    }
  },
  async force({ prompt, answer }) {
    const { decoder } = loaded
    const sequence = decoder.open()
    try {
      const best: number[] = []
      let rest = prompt
      for (;;) {
        const { maxChunkTokens = decoder.maxChunkTokens } = sequence
        if (rest.length <= maxChunkTokens) break
        await sequence.extend(rest.slice(0, maxChunkTokens))
        rest = rest.slice(maxChunkTokens)
      }
      let logits = await sequence.forward(rest)
      for (const token of answer) {
        const [found] = await logits.top([{ count: 1, temperature: 0 }])
        logits.release()
        best.push(found?.ids[0] ?? NaN)
        if (best.length < answer.length) logits = await decoder.step([{ sequence, token }])
      }
      return best
    } finally {
      sequence.close()
    }
  },
})
