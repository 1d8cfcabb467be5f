/** The engine for decoders in the ONNX format. */
import { InoriginError } from '../../error.ts'
import type { Engine, OpenEngine } from '../engine.ts'
import { readConfig } from './text/config.ts'
import { createDecoding } from './text/detokenizer.ts'
import { type Loaded, loadDecoder } from './load.ts'
import { decode } from './run/run.ts'
import { createPrompts } from './text/prompt.ts'

export const openOnnx: OpenEngine = async ({ device, runtime, texts, maxInputTokens }) => {
  const config = await readConfig(texts)
  const { endTokens, sampling, firstPosition } = config
  const contextWindow = Math.min(maxInputTokens, config.contextWindow)
  const openText = createDecoding(config.tokenizer, config.tokenizerConfig)
  const { prepare } = createPrompts(config, contextWindow)
  const template = config.templates.tools ?? config.templates.plain
  let loaded: Loaded | null = null

  const load: Engine['load'] = async (weights, signal) => {
    loaded ??= await loadDecoder({ device, runtime, contextWindow, firstPosition }, weights, signal)
  }

  const check: Engine['check'] = () =>
    Promise.reject(new InoriginError('invalid_request', 'Answers cannot be constrained yet.'))

  const generate: Engine['generate'] = (prompt, options) => {
    if (!loaded)
      throw new InoriginError('internal', 'The engine was asked to generate before it was loaded.')
    const { decoder } = loaded
    return decode(
      { decoder, text: openText(), endTokens, contextWindow, sampling },
      prompt,
      options,
    )
  }

  const close: Engine['close'] = async () => {
    const current = loaded
    loaded = null
    await current?.release()
  }
  return { contextWindow, template, load, prepare, check, generate, close }
}
