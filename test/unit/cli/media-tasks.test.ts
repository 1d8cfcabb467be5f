/** Folders of tasks that answer with parts of an image, or that hear sound: what they are drafted as. */
import { describe, expect, test } from 'vitest'
import type { Graph } from '../../support/onnx.ts'
import { addFolder, classes, json, SOUND, toPort, weight } from './graphs.ts'

describe('A model that answers with parts of an image', () => {
  const PIXELS = 'pixel_values float32 batch_size,num_channels,height,width'
  const SUM = { type: 'ReduceSum', inputs: ['pixel_values'], outputs: ['sum'] }
  /** Tensors that all have the sum of the pixels, in a shape of that many dimensions. */
  const summing = (outputs: string[], ...inputs: string[]): Graph => ({
    inputs: [PIXELS, ...inputs].map(toPort),
    outputs: outputs.map(toPort),
    nodes: [
      SUM,
      ...outputs.map((output) => {
        const [name = '', , shape = ''] = output.split(' ')
        return { type: 'Reshape', inputs: ['sum', `d${shape.split(',').length}`], outputs: [name] }
      }),
    ],
    weights: [3, 4].map((count) =>
      weight(`d${count}`, [count], { integers: Array<number>(count).fill(1) }, 'int64'),
    ),
  })
  const processor = (kind: string, content: object = {}) =>
    json({
      image_processor_type: `${kind}ImageProcessor`,
      size: { height: 32, width: 32 },
      ...content,
    })
  const put = (architecture: string, graph: Graph, preparation: string) =>
    addFolder({
      'm/config.json': json(classes(['cat', 'dog'], { architectures: [architecture] })),
      'm/preprocessor_config.json': preparation,
      'm/model.onnx': graph,
    })
  const labels = { file: 'config.json', key: 'id2label' }
  const EDGES = { size: { shortest_edge: 96, longest_edge: 160 } }

  test.each([
    [
      'DetrForObjectDetection',
      processor('Detr', { ...EDGES, do_pad: true }),
      { resize: { shortest: 96, longest: 160, nearest: true } },
      [{ step: 'softmax' }, { step: 'objects', boxes: 'pred_boxes', labels, background: true }],
    ],
    [
      'YolosForObjectDetection',
      json({ feature_extractor_type: 'YolosFeatureExtractor', size: 96, max_size: 160 }),
      { resize: { shortest: 96, longest: 160, nearest: true, multipleOf: 16, round: 'down' } },
      [{ step: 'softmax' }, { step: 'objects', boxes: 'pred_boxes', labels, background: true }],
    ],
    [
      'RTDetrForObjectDetection',
      processor('RTDetr'),
      { width: 32, height: 32 },
      [{ step: 'sigmoid' }, { step: 'objects', boxes: 'pred_boxes', labels }],
    ],
    [
      'ConditionalDetrForObjectDetection',
      processor('ConditionalDetr', EDGES),
      { resize: { shortest: 96, longest: 160, nearest: true } },
      [{ step: 'sigmoid' }, { step: 'objects', boxes: 'pred_boxes', labels, count: 100 }],
    ],
  ])('finds objects: %s', async (architecture, preparation, image, steps) => {
    const graph = summing(
      ['logits float32 batch,queries,classes', 'pred_boxes float32 batch,queries,sides'],
      'pixel_mask int64 batch,64,64',
    )
    const { entry, binding, notes, printed } = await put(architecture, graph, preparation)
    expect(notes).toEqual([])
    expect(entry.signature.inputs.map(({ name, type }) => `${name} ${type}`)).toEqual([
      'pixel_values image',
      'threshold float32',
    ])
    expect(binding('pixel_values')?.image).toEqual({
      channels: 'rgb',
      order: 'nchw',
      resample: 'bilinear',
      mask: 'pixel_mask',
      ...image,
    })
    const [scores, objects] = steps
    const all = [scores, { ...objects, thresholdInput: 'threshold' }]
    expect(binding('objects')).toEqual({ tensor: 'logits', steps: all })
    expect(printed).toContain('outputs.objects')
  })

  const MASKS = 'masks_queries_logits float32 batch,queries,h,w'
  const DEPTH = 'predicted_depth float32 batch,h,w'
  const depth = [{ step: 'resize', by: 'bicubic' }, { step: 'depth' }]
  test.each([
    [
      'SegformerForSemanticSegmentation',
      processor('Segformer'),
      ['logits float32 batch,classes,h,w'],
      { width: 32, height: 32 },
      { segments: [{ step: 'segments', labels }] },
    ],
    [
      'MaskFormerForInstanceSegmentation',
      processor('MaskFormer', EDGES),
      ['class_queries_logits float32 batch,queries,classes', MASKS],
      { resize: { shortest: 96, longest: 160, multipleOf: 32, round: 'up' } },
      {
        segments: [
          { step: 'softmax' },
          {
            step: 'panoptic',
            masks: 'masks_queries_logits',
            labels,
            thresholdInput: 'threshold',
          },
        ],
      },
    ],
    [
      'DepthAnythingForDepthEstimation',
      processor('DPT', { keep_aspect_ratio: true, ensure_multiple_of: 14, do_pad: false }),
      [DEPTH],
      { resize: { width: 32, height: 32, keepsRatio: true, multipleOf: 14 } },
      { depth, predicted_depth: depth.slice(0, 1) },
    ],
    [
      'DPTForDepthEstimation',
      processor('DPT', {
        do_resize: false,
        do_pad: true,
        size_divisor: 14,
        image_mean: [0.2, 0.4, 0.6],
      }),
      [DEPTH],
      {
        fit: 'pad',
        multipleOf: 14,
        padding: { side: 'both', value: [51, 102, 153] },
        mean: [0.2, 0.4, 0.6],
      },
      { depth, predicted_depth: depth.slice(0, 1) },
    ],
    [
      'GLPNForDepthEstimation',
      processor('GLPN', { size_divisor: 32 }),
      [DEPTH],
      { resize: { multipleOf: 32, round: 'down' } },
      { depth, predicted_depth: depth.slice(0, 1) },
    ],
  ])('makes another picture: %s', async (architecture, preparation, outputs, image, steps) => {
    const { entry, binding, notes } = await put(architecture, summing(outputs), preparation)
    expect(notes).toEqual([])
    expect(binding('pixel_values')?.image).toMatchObject(image)
    expect(entry.signature.outputs.map(({ name }) => name)).toEqual(Object.keys(steps))
    for (const [name, own] of Object.entries(steps)) expect(binding(name)?.steps).toEqual(own)
  })

  test.each([
    ['BiRefNet', 'output_image', 'Identity', [{ step: 'sigmoid' }]],
    ['BriaRMBG', 'output', 'Sigmoid', []],
    ['SomethingElse', 'alphas', 'Identity', []],
  ])('cuts out: %s', async (architecture, name, type, first) => {
    const graph: Graph = {
      inputs: [toPort('input_image float32 batch,3,32,32')],
      outputs: [toPort(`${name} float32 batch,1,32,32`)],
      nodes: [
        { type: 'ReduceSum', inputs: ['input_image', 'channel'], outputs: ['sum'] },
        { type, inputs: ['sum'], outputs: ['scores'] },
        { type: 'Cast', inputs: ['scores'], outputs: [name], attributes: { to: 1 } },
      ],
      weights: [weight('channel', [1], { integers: [1] }, 'int64')],
    }
    const { entry, binding } = await put(architecture, graph, processor('ViT'))
    expect(entry.signature.inputs).toMatchObject([{ name: 'input_image', type: 'image' }])
    expect(entry.signature.outputs).toMatchObject([{ name: 'cutout', type: 'image' }])
    expect(binding('cutout')?.steps).toEqual([
      ...first,
      { step: 'resize', by: 'bilinear' },
      { step: 'cutout' },
    ])
  })

  test('says what of its processor is not done', async () => {
    const preparation = processor('Donut', { do_pad: true, do_thumbnail: true })
    const graph = summing(['logits float32 batch,classes,h,w'])
    const { notes } = await put('SegformerForSemanticSegmentation', graph, preparation)
    expect(notes.map((note) => /asks for (\w+),/.exec(note)?.[1])).toEqual([
      'do_pad',
      'do_thumbnail',
    ])
  })
})

test('A classifier of sounds hears samples as its processor says', async () => {
  const { binding } = await addFolder({
    'm/config.json': json(
      classes(['a', 'b'], { architectures: ['Wav2Vec2ForSequenceClassification'] }),
    ),
    'm/preprocessor_config.json': json({
      feature_extractor_type: 'Wav2Vec2FeatureExtractor',
      sampling_rate: 16_000,
      do_normalize: true,
    }),
    'm/model.onnx': SOUND,
  })
  expect(binding('input_values')?.audio).toEqual({ rate: 16_000, normalize: true })
  expect(binding('labels')?.steps?.map(({ step }) => step)).toEqual(['softmax', 'top-k'])
})

test('A recognizer of speech has the letters of its vocabulary, without the blank', async () => {
  const graph: Graph = {
    ...SOUND,
    outputs: [toPort('logits float32 batch_size,frames,4')],
    nodes: [
      { type: 'ReduceSum', inputs: ['input_values', 'axes'], outputs: ['sum'] },
      {
        type: 'Concat',
        inputs: Array<string>(4).fill('sum'),
        outputs: ['four'],
        attributes: { axis: 1 },
      },
      { type: 'Unsqueeze', inputs: ['four', 'axes'], outputs: ['logits'] },
    ],
  }
  const files = {
    'm/config.json': json({ architectures: ['Wav2Vec2ForCTC'] }),
    'm/preprocessor_config.json': json({
      feature_extractor_type: 'Wav2Vec2FeatureExtractor',
      do_normalize: true,
    }),
    'm/model.onnx': graph,
  }
  const tokenizer = { pad_token: '[PAD]', word_delimiter_token: '_', do_lower_case: true }
  const { entry, binding } = await addFolder({
    ...files,
    'm/vocab.json': json({ B: 2, _: 0, '[PAD]': 1, "'": 3 }),
    'm/tokenizer_config.json': json(tokenizer),
  })
  expect(entry.signature.outputs).toMatchObject([{ name: 'text', type: 'string' }])
  const ctc = { step: 'ctc', labels: { names: ['_', 'b', "'"] }, blank: 1, delimiter: '_' }
  expect(binding('text')).toEqual({ tensor: 'logits', steps: [ctc] })

  const { notes } = await addFolder(files)
  expect(notes).toContain(
    'The model scores letters, but there is no vocab.json. Copy it from the original model.',
  )
})

test('A classifier of spectrograms hears sound', async () => {
  const { binding, notes } = await addFolder({
    'm/config.json': json(classes(['a', 'b'], { architectures: ['ASTForAudioClassification'] })),
    'm/preprocessor_config.json': json({
      feature_extractor_type: 'ASTFeatureExtractor',
      sampling_rate: 16_000,
      num_mel_bins: 8,
      max_length: 16,
      mean: -4,
      std: 2,
    }),
    'm/model.onnx': {
      ...SOUND,
      inputs: [toPort('input_values float32 batch_size,16,8')],
      nodes: [
        { type: 'ReduceSum', inputs: ['input_values', 'axes'], outputs: ['sum'] },
        { type: 'Flatten', inputs: ['sum'], outputs: ['flat'] },
        { type: 'Slice', inputs: ['flat', 'from', 'to', 'axes'], outputs: ['logits'] },
      ],
      weights: [
        weight('axes', [1], { integers: [1] }, 'int64'),
        weight('from', [1], { integers: [0] }, 'int64'),
        weight('to', [1], { integers: [2] }, 'int64'),
      ],
    },
  })
  const fbank = { bins: 8, frames: 16, mean: -4, std: 4 }
  expect(binding('input_values')?.audio).toEqual({ rate: 16_000, fbank })
  expect(notes).toEqual([])
})
