/** Catalog entries of the embedded models. `catalog.mjs` adds bytes, hashes and cards. */
import { digits, edges, embed } from './predictors.mjs'

const owner = { username: 'inorigin', created: '2026-11-21T00:00:00Z' }

/** Returns implementations that run the same files on either device. */
const onBoth = (resources) =>
  ['webgpu', 'wasm'].map((device) => ({
    id: `fp32-${device}`,
    engine: 'onnx',
    device,
    resources,
  }))

const guide = {
  type: 'model',
  tag: '@inorigin/guide',
  name: 'Guide',
  description:
    'Answers questions about inorigin in English, calls tools, fills in JSON, does small sums, and ' +
    'reasons when asked to.',
  created: '2026-11-21T00:00:00Z',
  owner,
  maxInputTokens: 2048,
  maxOutputTokens: 1024,
  capabilities: { tools: true, thinking: true, structuredOutputs: true },
  implementations: onBoth([
    { type: 'config', name: 'config.json' },
    { type: 'config', name: 'generation_config.json' },
    { type: 'tokenizer', name: 'tokenizer.json' },
    { type: 'tokenizer', name: 'tokenizer_config.json' },
    { type: 'onnx', name: 'onnx/model.onnx' },
  ]),
}

/** Entries by folder. */
export const entries = { guide, digits, edges, embed }
