/**
 * A stand-in for WebLLM at its documented low-level calls, the only one in these tests: libraries and
 * weights that MLC compiled cannot be had here. It computes scores for real, by the tiny model.
 */
import { openWithPipeline } from '../../../src/engine/webllm/index.ts'
import type { LoadedPipeline } from '../../../src/engine/webllm/pipeline.ts'
import type { Engine } from '../../../src/engine/engine.ts'
import type { Sequence } from '../../../src/engine/decoder.ts'
import { loadDecoder } from '../../../src/engine/onnx/load.ts'
import { runtimeFolder, tinyFiles } from '../../models/tiny.ts'
import { never, WEIGHTS } from './run-engine.ts'

/** What was asked of it. */
export interface Log {
  opened: number
  contextWindow: number
  resets: number
  /** Tokens of each call. */
  forwards: number[]
  /** Calls that fail as a lost device does; counted down. */
  failures: number
}

/** As MLC writes it. */
const CHAT = {
  context_window_size: 512,
  model_config: {},
  eos_token_id: 0,
  tokenizer_files: ['tokenizer.json'],
}

interface Options {
  maxInputTokens?: number
  /** Files that are replaced, or come to those of the tiny model. */
  texts?: Readonly<Record<string, unknown>>
}

export async function loadStandIn({ maxInputTokens = 400, texts: given }: Options = {}): Promise<{
  engine: Engine
  log: Log
}> {
  const log: Log = { opened: 0, contextWindow: 0, resets: 0, forwards: [], failures: 0 }
  const config = (await (await tinyFiles(['config.json'])).get('config.json')?.text()) ?? '{}'
  const { eos_token_id } = JSON.parse(config) as { eos_token_id: unknown }
  const names = new Set(['tokenizer.json', 'tokenizer_config.json', ...Object.keys(given ?? {})])
  const texts = await tinyFiles([...names], given)
  texts.set('mlc-chat-config.json', new Blob([JSON.stringify({ ...CHAT, eos_token_id })]))
  const engine = await openWithPipeline(
    async (_files, { signal, contextWindow }) => {
      log.opened += 1
      log.contextWindow = contextWindow
      return standIn(log, signal)
    },
    { device: 'webgpu', maxInputTokens, runtime: runtimeFolder(), texts },
  )
  await engine.load(new Map(), never)
  return { engine, log }
}

async function standIn(log: Log, signal: AbortSignal): Promise<LoadedPipeline> {
  const setup = {
    device: 'wasm',
    runtime: runtimeFolder(),
    contextWindow: 512,
    warm: false,
  } as const
  const model = await loadDecoder({ ...setup, firstPosition: 0 }, await tinyFiles(WEIGHTS), signal)
  let sequence: Sequence = model.decoder.open()
  return {
    async forward(tokens) {
      log.forwards.push(tokens.length)
      if (log.failures > 0) {
        log.failures -= 1
        throw new Error('Device is lost')
      }
      const logits = await sequence.forward(tokens)
      const row = (await logits.row(0)).slice()
      logits.release()
      return row
    },
    async reset() {
      log.resets += 1
      sequence.close()
      sequence = model.decoder.open()
    },
    release: () => model.release(),
  }
}
