/** The engine for decoders in the ONNX format. */
import { InoriginError } from '../../error.ts'
import type { Engine, OpenEngine } from '../engine.ts'
import { readConfig } from './config.ts'
import { createDecoding } from './detokenizer.ts'
import { type Loaded, loadDecoder } from './load.ts'
import { decode } from './run.ts'
import { parseTemplate } from './template.ts'
import { createEncoder } from './tokenizer.ts'

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

  const prepare: Engine['prepare'] = (messages) => {
    const tokens = encoder.encode(messages, template.render)
    if (tokens.length >= contextWindow) throw tooLong(tokens.length, contextWindow - 1)
    return { tokens }
  }

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
  return { contextWindow, load, prepare, generate, close }
}

function tooLong(tokens: number, most: number): InoriginError {
  return new InoriginError(
    'invalid_request',
    `prompt is too long: ${tokens} tokens > ${most} maximum. Shorten the conversation.`,
    { code: 'context_length_exceeded', param: 'messages' },
  )
}
