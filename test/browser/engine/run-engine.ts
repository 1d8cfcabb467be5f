/** The engine with the tiny model, and what its runs give. */
import type { GpuVerdict } from '../../../src/device/gpu-verdict.ts'
import type {
  GenerationResult,
  Engine,
  GenerateOptions,
  TextChunk,
  Prompt,
} from '../../../src/engine/engine.ts'
import {
  createDetokenizerFactory,
  type TokenizerFile,
} from '../../../src/engine/text/vocabulary.ts'
import { openOnnx } from '../../../src/engine/onnx/index.ts'
import tokenizer from '../../models/tiny/tokenizer.json'
import { CASES, constraintFolder, runtimeFolder, TEXTS, tinyFiles } from '../../models/tiny.ts'

export const WEIGHTS = ['onnx/model.onnx']
export const never = new AbortController().signal
export const GREEDY: GenerateOptions = { maxTokens: 16, sampling: {}, signal: never }

interface Options {
  device?: 'wasm' | 'webgpu'
  maxInputTokens?: number
  texts?: Readonly<Record<string, unknown>>
  expectedWeights?: Map<string, Blob>
  verdict?: GpuVerdict
}

export async function open({
  device = 'wasm',
  maxInputTokens = 512,
  texts,
  ...more
}: Options = {}): Promise<Engine> {
  return openOnnx({
    device,
    maxInputTokens,
    runtime: runtimeFolder(),
    constraints: constraintFolder(),
    texts: await tinyFiles([...new Set([...TEXTS, ...Object.keys(texts ?? {})])], texts),
    ...more,
  })
}

export async function load(options: Options = {}): Promise<Engine> {
  const engine = await open(options)
  await engine.load(await tinyFiles(WEIGHTS), never)
  return engine
}

export async function run(
  engine: Engine,
  prompt: Prompt,
  options = GREEDY,
): Promise<{ pieces: TextChunk[]; ending: GenerationResult }> {
  const running = engine.generate(prompt, options)
  const pieces: TextChunk[] = []
  for (;;) {
    const { value, done } = await running.next()
    if (done) return { pieces, ending: value }
    pieces.push(value)
  }
}

export const textOf = (pieces: readonly TextChunk[]): string =>
  pieces.map(({ text }) => text).join('')

export function decoded(tokens: readonly number[]): string {
  const text = createDetokenizerFactory(tokenizer as unknown as TokenizerFile, {})()
  return tokens.map((token) => text.push(token)).join('')
}

export const promptOf = (tokens: readonly number[]): Prompt => ({
  tokens,
  boundaries: [],
  opening: '',
})

const [, second, third] = CASES.map(({ prompt, greedy }) => ({ prompt: promptOf(prompt), greedy }))
if (!second || !third) throw new Error('three cases are needed')

export const short = second
export const long = third
