/** Catalog entries of the embedded predictors. */

const shared = {
  type: 'predictor',
  created: '2026-11-21T00:00:00Z',
  owner: { username: 'inorigin', created: '2026-11-21T00:00:00Z' },
  status: 'active',
  access: 'public',
}

/** Returns implementations for GPUs with half precision, for other GPUs, and for WASM. */
const everywhere = (bindings, others = []) =>
  [
    { id: 'fp16-webgpu', device: 'webgpu', requires: { features: ['shader-f16'] } },
    { id: 'fp32-webgpu', device: 'webgpu' },
    { id: 'fp32-wasm', device: 'wasm' },
  ].map(({ id, ...where }) => ({
    id,
    engine: 'onnx',
    ...where,
    resources: [
      { type: 'onnx', name: id.startsWith('fp16') ? 'model.fp16.onnx' : 'model.onnx' },
      ...others,
    ],
    bindings,
  }))

const members = (names) => names.map((name, value) => ({ name, value }))

export const digits = {
  ...shared,
  tag: '@inorigin/digits',
  name: 'Digits',
  description: 'Recognizes the digit that is drawn in a picture.',
  signature: {
    inputs: [
      {
        name: 'image',
        type: 'image',
        description: 'Picture of one digit, which can have any size and any position.',
      },
      {
        name: 'ink',
        type: 'int32',
        description:
          'Brightness of the digit relative to its background. The value auto looks at the border.',
        optional: true,
        enumeration: members(['auto', 'dark', 'light']),
        defaultValue: 'auto',
      },
    ],
    outputs: [
      {
        name: 'digit',
        type: 'int32',
        description: 'Most probable digit.',
        enumeration: members([
          'zero',
          'one',
          'two',
          'three',
          'four',
          'five',
          'six',
          'seven',
          'eight',
          'nine',
        ]),
      },
      { name: 'confidence', type: 'float32', description: 'Probability of that digit.' },
      {
        name: 'scores',
        type: 'float32',
        description: 'Probabilities of the ten digits, from zero to nine.',
      },
    ],
  },
  implementations: everywhere({
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

const COLORS = ['red', 'green', 'blue']
const ownSize = { channels: 'rgb', order: 'nchw', background: 'white' }

export const edges = {
  ...shared,
  tag: '@inorigin/edges',
  name: 'Edges',
  description: 'Draws the edges in a picture.',
  signature: {
    inputs: [
      {
        name: 'image',
        type: 'image',
        description: 'Picture of any size. Transparent parts are read as white.',
      },
      {
        name: 'strength',
        type: 'float32',
        description:
          'Factor for the brightness of edges. At 1, a step from black to white is drawn in full.',
        optional: true,
        range: { min: 0, max: 16 },
        defaultValue: 1,
      },
      {
        name: 'mode',
        type: 'int32',
        description:
          'Method that finds the edges. sobel, scharr and prewitt use the slope, laplacian the ' +
          'curvature, outline draws sobel onto the picture, and kernel uses your own kernel.',
        optional: true,
        enumeration: members(['sobel', 'scharr', 'prewitt', 'laplacian', 'outline', 'kernel']),
        defaultValue: 'sobel',
      },
      {
        name: 'invert',
        type: 'bool',
        description:
          'Draws dark lines on white instead of light lines on black. In the mode outline, only the ' +
          'color of the lines changes.',
        optional: true,
        defaultValue: false,
      },
      {
        name: 'weights',
        type: 'dict',
        description: 'Weight of each color in the brightness. Default: as the eye sees them.',
        optional: true,
        defaultValue: { red: 0.299, green: 0.587, blue: 0.114 },
        schema: {
          type: 'object',
          properties: Object.fromEntries(
            COLORS.map((name) => [name, { type: 'number', minimum: -4, maximum: 4 }]),
          ),
          required: COLORS,
          additionalProperties: false,
        },
      },
      {
        name: 'kernel',
        type: 'list',
        description: 'Three rows of three numbers, for the mode kernel.',
        optional: true,
        defaultValue: [
          [0, -1, 0],
          [-1, 4, -1],
          [0, -1, 0],
        ],
        schema: {
          type: 'array',
          minItems: 3,
          maxItems: 3,
          items: {
            type: 'array',
            minItems: 3,
            maxItems: 3,
            items: { type: 'number', minimum: -64, maximum: 64 },
          },
        },
      },
    ],
    outputs: [
      { name: 'edges', type: 'image', description: 'Picture of the same size as the input.' },
    ],
  },
  implementations: everywhere({
    image: { tensor: 'image', image: ownSize },
    strength: { tensor: 'strength', shape: [] },
    mode: { tensor: 'mode', shape: [] },
    invert: { tensor: 'invert', shape: [] },
    weights: { tensor: 'weights', keys: COLORS },
    edges: { tensor: 'edges', image: ownSize },
  }),
}

const MAX_TOKENS = 8192

export const embed = {
  ...shared,
  tag: '@inorigin/embed',
  name: 'Embed',
  description:
    'Turns English texts into vectors. Texts with similar meanings have vectors that are close.',
  embeddings: {
    input: 'text',
    output: 'vector',
    dimensions: 128,
    maxInputTokens: MAX_TOKENS,
  },
  signature: {
    inputs: [
      {
        name: 'text',
        type: 'string',
        description: `Text, or list of texts, of at most ${MAX_TOKENS} tokens each.`,
      },
    ],
    outputs: [
      {
        name: 'vector',
        type: 'float32',
        description:
          'Vector of 128 numbers and length 1 for each text. The dot product of two is their similarity.',
      },
      { name: 'tokens', type: 'int32', description: 'Number of tokens of each text.' },
    ],
  },
  implementations: everywhere(
    {
      text: {
        tensor: 'ids',
        text: { tokenizer: 'tokenizer.json', mask: 'mask', most: MAX_TOKENS },
      },
    },
    [
      { type: 'data', name: 'table.bin' },
      { type: 'tokenizer', name: 'tokenizer.json' },
    ],
  ),
}
