/** What the catalog says of each embedded model; `catalog.mjs` adds bytes, hashes and cards. */

const owner = { username: 'inorigin', created: '2026-11-21T00:00:00Z' }

/** One set of files, run on either device. */
const onBoth = (resources, bindings) =>
  ['webgpu', 'wasm'].map((device) => ({
    id: `fp32-${device}`,
    engine: 'onnx',
    device,
    resources,
    bindings,
  }))

const guide = {
  type: 'model',
  tag: '@inorigin/guide',
  name: 'Guide',
  description:
    'Greets, tells what inorigin is and how it is used, and does small sums. In English.',
  created: '2026-11-21T00:00:00Z',
  owner,
  maxInputTokens: 2048,
  maxOutputTokens: 1024,
  implementations: onBoth([
    { type: 'config', name: 'config.json' },
    { type: 'config', name: 'generation_config.json' },
    { type: 'tokenizer', name: 'tokenizer.json' },
    { type: 'tokenizer', name: 'tokenizer_config.json' },
    { type: 'onnx', name: 'onnx/model.onnx' },
  ]),
}

const digitNames = ['zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine']

const digits = {
  type: 'predictor',
  tag: '@inorigin/digits',
  name: 'Digits',
  description: 'Which digit is drawn.',
  created: '2026-11-21T00:00:00Z',
  owner,
  status: 'active',
  access: 'public',
  signature: {
    inputs: [
      {
        name: 'image',
        type: 'image',
        description: 'One digit, of any size and anywhere on the picture.',
      },
      {
        name: 'ink',
        type: 'int32',
        description:
          'Whether the digit is darker or lighter than its paper; auto looks at the border.',
        optional: true,
        enumeration: [
          { name: 'auto', value: 0 },
          { name: 'dark', value: 1 },
          { name: 'light', value: 2 },
        ],
        defaultValue: 'auto',
      },
    ],
    outputs: [
      {
        name: 'digit',
        type: 'int32',
        description: 'The most probable digit.',
        enumeration: digitNames.map((name, value) => ({ name, value })),
      },
      { name: 'confidence', type: 'float32', description: 'Its probability.' },
      {
        name: 'scores',
        type: 'float32',
        description: 'The probabilities of all ten, from zero to nine.',
      },
    ],
  },
  implementations: onBoth([{ type: 'onnx', name: 'model.onnx' }], {
    image: {
      tensor: 'image',
      image: {
        width: 128,
        height: 128,
        channels: 'gray',
        order: 'nchw',
        fit: 'contain',
        background: 'white',
      },
    },
    ink: { tensor: 'ink', shape: [] },
  }),
}

/** By folder. */
export const entries = { guide, digits }
