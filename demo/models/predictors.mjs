/** What the catalog says of the embedded predictors. */

const shared = {
  type: 'predictor',
  created: '2026-11-21T00:00:00Z',
  owner: { username: 'inorigin', created: '2026-11-21T00:00:00Z' },
  status: 'active',
  access: 'public',
}

/** Half precision where the GPU has it; single precision on other GPUs, and without one. */
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
  description: 'Which digit is drawn.',
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
        enumeration: members(['auto', 'dark', 'light']),
        defaultValue: 'auto',
      },
    ],
    outputs: [
      {
        name: 'digit',
        type: 'int32',
        description: 'The most probable digit.',
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
      { name: 'confidence', type: 'float32', description: 'Its probability.' },
      {
        name: 'scores',
        type: 'float32',
        description: 'The probabilities of all ten, from zero to nine.',
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

const COLOURS = ['red', 'green', 'blue']
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
        description: 'A picture of any size; its alpha is left out.',
      },
      {
        name: 'strength',
        type: 'float32',
        description:
          'How strong a faint edge is drawn; 1 draws a step from black to white in full.',
        optional: true,
        range: { min: 0, max: 16 },
        defaultValue: 1,
      },
      {
        name: 'mode',
        type: 'int32',
        description:
          'How edges are found: by three kinds of slope, by curvature, by slope and drawn on the ' +
          'picture, or by a kernel of your own.',
        optional: true,
        enumeration: members(['sobel', 'scharr', 'prewitt', 'laplacian', 'outline', 'kernel']),
        defaultValue: 'sobel',
      },
      {
        name: 'invert',
        type: 'bool',
        description: 'Dark lines on white, or on the picture, instead of light ones on black.',
        optional: true,
        defaultValue: false,
      },
      {
        name: 'weights',
        type: 'dict',
        description: 'How much each colour counts. Default: as it does to the eye.',
        optional: true,
        defaultValue: { red: 0.299, green: 0.587, blue: 0.114 },
        schema: {
          type: 'object',
          properties: Object.fromEntries(
            COLOURS.map((name) => [name, { type: 'number', minimum: -4, maximum: 4 }]),
          ),
          required: COLOURS,
          additionalProperties: false,
        },
      },
      {
        name: 'kernel',
        type: 'list',
        description: 'Three rows of three numbers, for the mode of that name.',
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
      { name: 'edges', type: 'image', description: 'A picture of the size of the one given.' },
    ],
  },
  implementations: everywhere({
    image: { tensor: 'image', image: ownSize },
    strength: { tensor: 'strength', shape: [] },
    mode: { tensor: 'mode', shape: [] },
    invert: { tensor: 'invert', shape: [] },
    weights: { tensor: 'weights', keys: COLOURS },
    edges: { tensor: 'edges', image: ownSize },
  }),
}

const MOST_TOKENS = 8192

export const embed = {
  ...shared,
  tag: '@inorigin/embed',
  name: 'Embed',
  description: 'Turns texts into vectors, such that like meanings are near each other. In English.',
  embeddings: {
    input: 'text',
    output: 'vector',
    dimensions: 128,
    maxInputTokens: MOST_TOKENS,
  },
  signature: {
    inputs: [
      {
        name: 'text',
        type: 'string',
        description: `A text, or a list of them, of ${MOST_TOKENS} tokens at most.`,
      },
    ],
    outputs: [
      {
        name: 'vector',
        type: 'float32',
        description:
          'For each text 128 numbers, of length 1: the dot product of two is their likeness.',
      },
      { name: 'tokens', type: 'int32', description: 'How many tokens each text has.' },
    ],
  },
  implementations: everywhere(
    {
      text: {
        tensor: 'ids',
        text: { tokenizer: 'tokenizer.json', mask: 'mask', most: MOST_TOKENS },
      },
    },
    [
      { type: 'data', name: 'table.bin' },
      { type: 'tokenizer', name: 'tokenizer.json' },
    ],
  ),
}
