/** What the catalog says of each embedded model; `catalog.mjs` adds bytes, hashes and cards. */
import { digits, edges, embed } from './predictors.mjs'

const owner = { username: 'inorigin', created: '2026-11-21T00:00:00Z' }

/** One set of files, run on either device. */
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
    'Tells what inorigin is and how it is used, calls tools, fills JSON, does small sums, and thinks ' +
    'when asked to. In English.',
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

/** By folder. */
export const entries = { guide, digits, edges, embed }
