/** Our engine, with nothing around it. */
import { openDecoderEngine } from '../../src/engine/decoder-engine.ts'
import { loadDecoder } from '../../src/engine/onnx/load.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { onnxPath, type OnnxFormat, SHAPES } from './models/shapes.ts'
import { serveSide } from './side.ts'

const TEXTS = ['config.json', 'generation_config.json', 'tokenizer.json', 'tokenizer_config.json']
const signal = new AbortController().signal

let engine: Engine

async function filesOf(model: string, names: readonly string[]): Promise<Map<string, Blob>> {
  const files = new Map<string, Blob>()
  for (const name of names) {
    files.set(name, await (await fetch(`/bench/models/${model}/${name}`)).blob())
  }
  return files
}

serveSide({
  async open({ model, format, device, drafts = device === 'webgpu' }) {
    const graph = onnxPath(format as OnnxFormat)
    const constraints = `${location.origin}/inorigin/`
    const runtime = `${constraints}ort/`
    const texts = await filesOf(model, TEXTS)
    const setup = { device, runtime, constraints, texts, maxInputTokens: SHAPES[model].context }
    engine = await openDecoderEngine(setup, { load: loadDecoder, drafts })
    await engine.load(await filesOf(model, [graph, `${graph}_data`]), signal)
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
})
