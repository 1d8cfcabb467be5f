/** The engine for decoders in the ONNX format. */
import { InoriginError } from '../../error.ts'
import type { Engine, OpenEngine } from '../engine.ts'
import { readConfig } from './text/config.ts'
import { createDecoding } from './text/detokenizer.ts'
import { type Loaded, loadDecoder } from './load.ts'
import { decode } from './run/run.ts'
import { parseTemplate } from './text/template.ts'
import { createEncoder } from './text/tokenizer.ts'

export const openOnnx: OpenEngine = async ({ device, runtime, texts, maxInputTokens }) => {
  const config = await readConfig(texts)
  const { endTokens, sampling, firstPosition } = config
  const contextWindow = Math.min(maxInputTokens, config.contextWindow)
  const template = parseTemplate(config.template, config.tokenNames)
  const openText = createDecoding(config.tokenizer, config.tokenizerConfig)
  const encoder = createEncoder(config.tokenizer, config.tokenizerConfig, config.template)
  let loaded: Loaded | null = null

  const load: Engine['load'] = async (weights, signal) => {
    loaded ??= await loadDecoder({ device, runtime, contextWindow, firstPosition }, weights, signal)
  }

  // An answer needs a token at least.
  const prepare: Engine['prepare'] = ({ messages }) => ({
    tokens: encoder.encode(messages, template.render, contextWindow - 1),
    boundaries: [],
    opening: '',
  })

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
  return { contextWindow, template: config.template, load, prepare, check, generate, close }
}
