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

const glance = {
  type: 'model',
  tag: '@inorigin/glance',
  name: 'Glance',
  description:
    'Sees simple drawings: shapes, their colors, counts and places, printed words and numbers, bars, ' +
    'and dialogs, on whose button it can click with a tool. Without a picture, it talks like the guide.',
  created: '2026-11-26T00:00:00Z',
  owner,
  maxInputTokens: 2048,
  maxOutputTokens: 1024,
  capabilities: { imageInput: true, tools: true, thinking: true, structuredOutputs: true },
  implementations: onBoth([
    { type: 'config', name: 'config.json' },
    { type: 'config', name: 'generation_config.json' },
    { type: 'config', name: 'preprocessor_config.json' },
    { type: 'config', name: 'processor_config.json' },
    { type: 'tokenizer', name: 'tokenizer.json' },
    { type: 'tokenizer', name: 'tokenizer_config.json' },
    { type: 'onnx', name: 'onnx/vision_encoder.onnx' },
    { type: 'onnx', name: 'onnx/embed_tokens.onnx' },
    { type: 'onnx', name: 'onnx/decoder_model_merged.onnx' },
  ]),
}

const smollm2 = {
  type: 'model',
  tag: '@huggingfacetb/smollm2-135m',
  name: 'SmolLM2 135M',
  description:
    'Small chat model that answers in English. It is often wrong about facts and sums, and knows no ' +
    'other language.',
  license: 'apache-2.0',
  languages: ['en'],
  created: '2026-11-21T00:00:00Z',
  maxInputTokens: 8192,
  maxOutputTokens: 4096,
  capabilities: { tools: true, structuredOutputs: true },
  implementations: ['webgpu', 'wasm'].map((device) => ({
    id: `q4_1-${device}`,
    engine: 'onnx',
    device,
    requires: { memory: 122_953_040 },
    resources: [
      { type: 'config', name: 'config.json' },
      { type: 'config', name: 'generation_config.json' },
      { type: 'tokenizer', name: 'tokenizer.json' },
      { type: 'tokenizer', name: 'tokenizer_config.json' },
      { type: 'gguf', name: 'SmolLM2-135M-Instruct.Q4_1.gguf' },
    ],
  })),
}

/** Entries of the package by folder. */
export const entries = { guide, glance, digits, edges, embed }

/** Entries that only the playground brings, by folder. */
export const playgroundEntries = { 'smollm2-135m': smollm2 }
