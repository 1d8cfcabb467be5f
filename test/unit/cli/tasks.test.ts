/** Folders of tasks: what their configuration says becomes the draft, and options change it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { PredictorEntry } from '../../../src/catalog/schema.ts'
import type { BindingFlags } from '../../../src/cli/commands/add.ts'
import { decoderGraph } from '../../support/encoder-decoder.ts'
import type { Graph } from '../../support/onnx.ts'
import {
  addFolder,
  addIn,
  classes,
  type Files,
  freshFolder,
  GUIDE,
  json,
  SOUND,
  toPort,
  weight,
} from './graphs.ts'

const TOKENIZER = readFileSync(join(GUIDE, 'tokenizer.json'))

const TOKENS = ['input_ids', 'attention_mask'].map((name) => toPort(`${name} int64 batch,tokens`))

/** Each token is a vector of three numbers: its id, once for each. */
const ENCODER: Graph = {
  inputs: TOKENS,
  outputs: [toPort('last_hidden_state float32 batch,tokens,3')],
  nodes: [
    { type: 'Mul', inputs: TOKENS.map(({ name }) => name), outputs: ['kept'] },
    { type: 'Cast', inputs: ['kept'], outputs: ['floats'], attributes: { to: 1 } },
    { type: 'Unsqueeze', inputs: ['floats', 'axes'], outputs: ['column'] },
    {
      type: 'Concat',
      inputs: ['column', 'column', 'column'],
      outputs: ['last_hidden_state'],
      attributes: { axis: 2 },
    },
  ],
  weights: [weight('axes', [1], { integers: [2] }, 'int64')],
}

/** Scores of `count` classes, from the sum of the tokens. */
const scorer = (count: number): Graph => ({
  inputs: TOKENS,
  outputs: [toPort(`logits float32 batch,${count}`)],
  nodes: [
    { type: 'Mul', inputs: TOKENS.map(({ name }) => name), outputs: ['kept'] },
    { type: 'Cast', inputs: ['kept'], outputs: ['floats'], attributes: { to: 1 } },
    { type: 'ReduceSum', inputs: ['floats', 'axes'], outputs: ['sum'] },
    {
      type: 'Concat',
      inputs: Array<string>(count).fill('sum'),
      outputs: ['logits'],
      attributes: { axis: 1 },
    },
  ],
  weights: [weight('axes', [1], { integers: [1] }, 'int64')],
})

/** Mean of the pixels, with free lengths as exporters write them. */
const CLASSIFIER: Graph = {
  inputs: [toPort('pixel_values float32 batch_size,num_channels,height,width')],
  outputs: [toPort('logits float32 batch_size,3')],
  nodes: [
    { type: 'GlobalAveragePool', inputs: ['pixel_values'], outputs: ['mean'] },
    { type: 'Flatten', inputs: ['mean'], outputs: ['logits'] },
  ],
}

const sentence = (mode: string, ...kinds: string[]) => ({
  'm/modules.json': json(
    ['Transformer', 'Pooling', ...kinds].map((kind, at) => ({
      type: `sentence_transformers.models.${kind}`,
      path: at === 0 ? '' : `${at}_${kind}`,
    })),
  ),
  'm/1_Pooling/config.json': json({ word_embedding_dimension: 3, [mode]: true }),
})

const encoder = (config: object = {}) => ({
  'm/config.json': json({ architectures: ['BertModel'], max_position_embeddings: 64, ...config }),
  'm/tokenizer.json': TOKENIZER,
})

const normalize = { step: 'normalize' } as const

describe('An encoder of texts', () => {
  test.each<[string, string[], object[]]>([
    ['pooling_mode_mean_tokens', ['Normalize'], [{ step: 'pool', by: 'mean' }, normalize]],
    ['pooling_mode_cls_token', [], [{ step: 'pool', by: 'first' }]],
    ['pooling_mode_lasttoken', ['Normalize'], [{ step: 'pool', by: 'last' }, normalize]],
    ['pooling_mode_max_tokens', [], [{ step: 'pool', by: 'max' }]],
  ])('pools as %s says', async (mode, kinds, steps) => {
    const files = { ...encoder(), ...sentence(mode, ...kinds), 'm/model.onnx': ENCODER }
    const { entry, binding, printed, notes } = await addFolder(files)
    expect(binding('embedding')).toEqual({ tensor: 'last_hidden_state', steps })
    expect(entry.embeddings).toMatchObject({ input: 'text', output: 'embedding', dimensions: 3 })
    expect(printed).toContain("fetch('/v1/embeddings'")
    expect(notes.filter((note) => !note.startsWith('tokenizer.json'))).toEqual([])
  })

  test('without the files of sentence-transformers is the mean, with a note', async () => {
    const { binding, notes } = await addFolder({ ...encoder(), 'm/onnx/model.onnx': ENCODER })
    expect(binding('embedding')?.steps).toEqual([{ step: 'pool', by: 'mean' }, normalize])
    expect(notes.join()).toContain('The folder has no modules.json')
  })

  test('pools as its files say also without modules.json', async () => {
    const { 'm/1_Pooling/config.json': pooling } = sentence('pooling_mode_cls_token')
    const { binding, notes } = await addFolder({
      ...encoder(),
      'm/1_Pooling/config.json': pooling,
      'm/model.onnx': ENCODER,
    })
    expect(binding('embedding')?.steps).toEqual([{ step: 'pool', by: 'first' }, normalize])
    expect(notes).toContain(
      'The folder has no modules.json, so vectors are scaled to the length 1.',
    )
  })

  test('is cut where and to the length that its files say', async () => {
    const limits = {
      'm/tokenizer_config.json': json({ model_max_length: 48, truncation_side: 'left' }),
      'm/onnx/model.onnx': ENCODER,
    }
    const { binding, entry } = await addFolder({ ...encoder({ pad_token_id: 1 }), ...limits })
    expect(binding('text')?.text).toMatchObject({ most: 48, truncate: 'start', pad: 1 })
    expect(entry.embeddings?.maxInputTokens).toBe(48)
    const own = { 'm/sentence_bert_config.json': json({ max_seq_length: 32 }) }
    const shorter = await addFolder({ ...encoder(), ...limits, ...own })
    expect(shorter.entry.embeddings?.maxInputTokens).toBe(32)
  })

  test('has prompts, and vectors that can be shortened if its files say so', async () => {
    const prompts = { prompts: { query: 'query: ' }, default_prompt_name: 'query' }
    const { entry } = await addFolder({
      ...encoder({ matryoshka_dimensions: [3, 2] }),
      'm/config_sentence_transformers.json': json(prompts),
      'm/model.onnx': ENCODER,
    })
    expect(entry.embeddings).toMatchObject({
      shortens: true,
      prompts: { query: 'query: ' },
      defaultPrompt: 'query',
    })
  })

  test('with a part that the graph lacks is refused', async () => {
    const files = { ...encoder(), ...sentence('pooling_mode_mean_tokens', 'Dense') }
    await expect(addFolder({ ...files, 'm/model.onnx': ENCODER })).rejects.toThrow(
      'modules.json lists a part Dense, which the graph does not have.',
    )
  })

  test('keeps its vectors in several precisions beside config.json', async () => {
    const graphs = { 'm/model.onnx': ENCODER, 'm/model_fp16.onnx': ENCODER }
    const { entry } = await addFolder({ ...encoder(), ...graphs })
    const ids = entry.implementations.map(({ id }) => id)
    expect(ids).toEqual(['fp16-webgpu', 'fp32-webgpu', 'fp32-wasm'])
    expect(entry.implementations[0]?.resources.map(({ name }) => name)).toContain('model_fp16.onnx')
  })
})

describe('A classifier of texts', () => {
  const top = {
    step: 'top-k',
    count: 3,
    countInput: 'top_k',
    labels: { file: 'config.json', key: 'id2label' },
  }

  test('names its classes, and its example is a text', async () => {
    const config = encoder(classes(['a', 'b', 'c']))
    const { entry, binding, printed } = await addFolder({ ...config, 'm/model.onnx': scorer(3) })
    expect(binding('labels')?.steps).toEqual([{ step: 'softmax' }, top])
    const inputs = entry.signature.inputs.map(({ name, type }) => `${name} ${type}`)
    expect(inputs).toEqual(['text string', 'text_pair string', 'top_k int32'])
    expect(printed).toContain("text: 'text',")
  })

  test.each([
    [{ problem_type: 'multi_label_classification' }, [{ step: 'sigmoid' }]],
    [{ problem_type: 'regression' }, []],
  ])('has the scores of %j', async (changes, steps) => {
    const config = encoder(classes(['a', 'b', 'c'], changes))
    const { binding } = await addFolder({ ...config, 'm/onnx/model.onnx': scorer(3) })
    expect(binding('labels')?.steps).toEqual([...steps, top])
  })

  test('with a class for entailment takes labels, too', async () => {
    const names = ['contradiction', 'neutral', 'entailment']
    const { entry, binding } = await addFolder({
      ...encoder(classes(names)),
      'm/model.onnx': scorer(3),
    })
    expect(entry.signature.inputs.map(({ name }) => name)).toEqual([
      'text',
      'text_pair',
      'candidate_labels',
      'hypothesis_template',
      'multi_label',
      'top_k',
    ])
    expect(binding('labels')?.steps?.map(({ step }) => step)).toEqual([
      'zero-shot',
      'softmax',
      'top-k',
    ])
    expect(binding('labels')?.steps?.[0]).toMatchObject({ entailment: 2 })
  })

  test('of one class scores pairs', async () => {
    const { entry, binding } = await addFolder({
      ...encoder(classes(['LABEL_0'])),
      'm/model.onnx': scorer(1),
    })
    expect(entry.rerank).toEqual({ input: 'text', output: 'score' })
    expect(binding('score')).toEqual({ tensor: 'logits', steps: [{ step: 'sigmoid' }] })
  })
})

test('A classifier of images is prepared as its processor says, whatever lengths are free', async () => {
  const { entry, binding, notes, printed } = await addFolder({
    'm/config.json': json(
      classes(['a', 'b', 'c'], { architectures: ['ResNetForImageClassification'] }),
    ),
    'm/preprocessor_config.json': json({
      image_processor_type: 'ConvNextImageProcessor',
      size: { shortest_edge: 224 },
      crop_pct: 0.875,
      resample: 3,
      image_mean: [0.5, 0.4, 0.3],
      image_std: [0.2, 0.2, 0.2],
    }),
    'm/model.onnx': CLASSIFIER,
  })
  expect(binding('pixel_values')).toEqual({
    tensor: 'pixel_values',
    shape: [null, null, null, null],
    image: {
      channels: 'rgb',
      order: 'nchw',
      width: 224,
      height: 224,
      resize: { shortest: 256 },
      resample: 'bicubic',
      mean: [0.5, 0.4, 0.3],
      std: [0.2, 0.2, 0.2],
    },
  })
  expect(entry.signature.outputs.map(({ name, type }) => `${name} ${type}`)).toEqual([
    'labels list',
  ])
  expect(notes).toEqual([])
  expect(printed).toContain('pixel_values: document.images[0]')
})

test.each([
  ['clip', 'softmax', {}, {}],
  ['siglip', 'sigmoid', { length: 64, pad: 1 }, {}],
  ['siglip', 'sigmoid', { length: 64, pad: 0 }, { pad_token_id: 0 }],
])('An image is compared with labels by %s: %s, %j', async (kind, step, layout, text) => {
  const graph: Graph = {
    inputs: [
      ...TOKENS.slice(0, 1),
      toPort('pixel_values float32 batch_size,num_channels,height,width'),
    ],
    outputs: [toPort('logits_per_image float32 image_batch,text_batch')],
    nodes: [
      { type: 'Cast', inputs: ['input_ids'], outputs: ['floats'], attributes: { to: 1 } },
      {
        type: 'ReduceSum',
        inputs: ['floats', 'axes'],
        outputs: ['sums'],
        attributes: { keepdims: 0 },
      },
      {
        type: 'ReduceSum',
        inputs: ['pixel_values'],
        outputs: ['all'],
        attributes: { keepdims: 0 },
      },
      { type: 'Add', inputs: ['sums', 'all'], outputs: ['scores'] },
      { type: 'Unsqueeze', inputs: ['scores', 'first'], outputs: ['logits_per_image'] },
    ],
    weights: [
      weight('axes', [1], { integers: [1] }, 'int64'),
      weight('first', [1], { integers: [0] }, 'int64'),
    ],
  }
  const { entry, binding } = await addFolder({
    'm/config.json': json({
      model_type: kind,
      text_config: { max_position_embeddings: 64, ...text },
    }),
    'm/tokenizer.json': TOKENIZER,
    'm/preprocessor_config.json': json({
      image_processor_type: 'CLIPImageProcessor',
      size: { shortest_edge: 32 },
      crop_size: { height: 32, width: 32 },
    }),
    'm/model.onnx': graph,
  })
  expect(entry.signature.inputs.map(({ name, type }) => `${name} ${type}`)).toEqual([
    'pixel_values image',
    'candidate_labels list',
    'hypothesis_template string',
  ])
  expect(binding('labels')?.steps).toEqual([{ step }, { step: 'zero-shot' }])
  expect(binding('candidate_labels')?.text).toMatchObject({
    template: 'hypothesis_template',
    ...layout,
  })
})

describe('Options of a folder', () => {
  const files = { ...encoder(classes(['a', 'b', 'c'])), 'm/onnx/model.onnx': scorer(3) }

  test('change the steps of an output by its tensor, and keep the rest', async () => {
    const { entry, binding } = await addFolder(files, {
      step: ['logits=sigmoid', 'logits=top-k,count=2'],
    })
    expect(binding('logits')?.steps).toMatchObject([
      { step: 'sigmoid' },
      { step: 'top-k', count: 2, labels: { file: 'config.json', key: 'id2label' } },
    ])
    expect(entry.signature.inputs.at(-1)).toMatchObject({ name: 'top_k', defaultValue: 2 })
  })

  test('make scores of labels, without what only labels need', async () => {
    const { entry } = await addFolder(files, { step: ['logits=softmax'] })
    expect(entry.signature.outputs).toMatchObject([{ name: 'logits', type: 'float32' }])
    expect(entry.signature.inputs.map(({ name }) => name)).toEqual(['text', 'text_pair'])
  })

  test('name labels beside the folder or its graph', async () => {
    const flags = { step: ['logits=top-k'], labels: ['logits=names.txt'] }
    const { binding } = await addFolder({ ...files, 'm/names.txt': 'x\ny\nz\n' }, flags)
    expect(binding('logits')?.steps).toMatchObject([{ labels: { file: 'names.txt' } }])
  })

  test('rename the vectors, also for the endpoint', async () => {
    const vectors = { ...encoder(), ...sentence('pooling_mode_cls_token'), 'm/model.onnx': ENCODER }
    const { entry } = await addFolder(vectors, { output: ['vector=last_hidden_state'] })
    expect(entry.embeddings?.output).toBe('vector')
    const raw = await addFolder(vectors, { step: ['last_hidden_state=sigmoid'] })
    expect(raw.entry.embeddings).toBeUndefined()
    const kept = await addFolder(vectors, {}, ['input_ids'])
    expect(kept.entry.signature.inputs.map(({ name }) => name)).toEqual([
      'input_ids',
      'attention_mask',
    ])
  })

  const spectrogram: Graph = {
    inputs: [toPort('input_features float32 batch_size,feature_size,frames')],
    outputs: [toPort('y float32 batch_size,feature_size,frames')],
    nodes: [{ type: 'Identity', inputs: ['input_features'], outputs: ['y'] }],
  }

  test.each<[string, Files, BindingFlags, string]>([
    ['an unknown output', files, { step: ['z=softmax'] }, '--step z: there is no such output.'],
    [
      'an image of a text',
      files,
      { image: ['input_ids'] },
      '--image input_ids: the input is no image.',
    ],
    ['the size of no image', files, { size: '9x9' }, 'No input is an image'],
    [
      'sound of a spectrogram',
      { 'm/config.json': '{}', 'm/model.onnx': spectrogram },
      { audio: ['input_features=16000'] },
      '--audio input_features: the input takes no samples',
    ],
    [
      'steps of a chat model',
      Object.fromEntries(
        ['config.json', 'tokenizer.json', 'tokenizer_config.json', 'onnx/model.onnx'].map(
          (name) => [`m/${name}`, readFileSync(join(GUIDE, name))],
        ),
      ),
      { step: ['logits=softmax'] },
      '--step is for the inputs and outputs of predictors, and this is a chat model.',
    ],
  ])('are refused: %s', async (_, given, flags, message) => {
    await expect(addFolder(given, flags)).rejects.toThrow(message)
  })
})

describe('An encoder-decoder', () => {
  const STATES: Graph = {
    ...ENCODER,
    outputs: [toPort('last_hidden_state float32 batch,tokens,2')],
    nodes: ENCODER.nodes.map((node) =>
      node.type === 'Concat' ? { ...node, inputs: ['column', 'column'] } : node,
    ),
  }
  const config = {
    architectures: ['BartForConditionalGeneration'],
    is_encoder_decoder: true,
    decoder_start_token_id: 5,
    eos_token_id: 3,
  }
  const graphs = {
    'm/encoder_model.onnx': STATES,
    'm/decoder_model_merged.onnx': decoderGraph('merged'),
  }
  const generation = (settings: object) => ({
    'm/generation_config.json': json({ ...config, ...settings }),
  })
  const decoderOf = ({ implementations }: PredictorEntry) => implementations[0]?.decoder

  test('reads texts and writes one, by the rules of its configuration', async () => {
    const { entry, binding, printed, notes } = await addFolder({
      ...encoder(config),
      ...generation({
        max_length: 40,
        min_length: 12,
        no_repeat_ngram_size: 3,
        repetition_penalty: 1.3,
        forced_bos_token_id: 0,
        forced_eos_token_id: [3],
        suppress_tokens: [8],
        begin_suppress_tokens: [9],
        bad_words_ids: [[5], [6, 7]],
        num_beams: 4,
        guidance_scale: 3,
      }),
      ...graphs,
    })
    expect(decoderOf(entry)).toEqual({
      output: 'text',
      encoder: 'encoder_model.onnx',
      graph: 'decoder_model_merged.onnx',
      tokenizer: 'tokenizer.json',
      start: [5],
      end: [3],
      maxTokens: 39,
      minTokens: 11,
      noRepeat: 3,
      repetitionPenalty: 1.3,
      firstToken: 0,
      lastToken: 3,
      suppress: [8],
      suppressFirst: [9],
      exclude: [[5], [6, 7]],
      maxTokensInput: 'max_new_tokens',
    })
    expect(binding('text')?.text).toMatchObject({ most: 64, truncate: 'end' })
    expect(entry.signature.outputs).toMatchObject([{ name: 'text', type: 'string' }])
    expect(printed).toContain("  text: 'text',\n  })\n  console.log(outputs.text)")
    expect(notes).toEqual(
      expect.arrayContaining([
        expect.stringContaining('asks for 4 beams'),
        expect.stringContaining('guidance_scale'),
      ]),
    )
  })

  test('has the tasks of its configuration, and no limit of tokens of its own', async () => {
    const params = { summarization: { prefix: 'sum up: ', max_length: 20, min_length: 5 } }
    const own = { model_type: 't5', task_specific_params: params }
    const { entry, binding } = await addFolder({ ...encoder({ ...config, ...own }), ...graphs })
    expect(decoderOf(entry)?.tasks).toEqual({
      input: 'task',
      named: { summarization: { prefix: 'sum up: ', minTokens: 4 } },
    })
    expect(entry.signature.inputs).toMatchObject([
      { name: 'text' },
      { name: 'task', optional: true, enumeration: [{ name: 'summarization' }] },
      { name: 'max_new_tokens', optional: true },
    ])
    expect(binding('text')?.text?.most).toBe(4096)
  })

  test('has the languages of its tokenizer, of which a forced one is the default', async () => {
    const added = { 9: 'eng_Latn', 10: 'fra_Latn', 11: '<mask>' }
    const { entry, printed } = await addFolder({
      ...encoder(config),
      ...generation({ forced_bos_token_id: 10 }),
      'm/tokenizer_config.json': json({
        added_tokens_decoder: Object.fromEntries(
          Object.entries(added).map(([id, content]) => [id, { content }]),
        ),
      }),
      ...graphs,
    })
    expect(decoderOf(entry)?.languages).toEqual({
      source: 'src_lang',
      target: 'tgt_lang',
      names: ['eng_Latn', 'fra_Latn'],
    })
    expect(entry.signature.inputs).toMatchObject([
      { name: 'text' },
      { name: 'src_lang' },
      { name: 'tgt_lang', optional: true, defaultValue: 'fra_Latn' },
      { name: 'max_new_tokens' },
    ])
    expect(printed).toContain("  src_lang: 'eng_Latn',")
  })

  test('hears speech as its processor says, with the tokens of its languages', async () => {
    const features: Graph = {
      inputs: [toPort('input_features float32 batch,4,100')],
      outputs: [toPort('last_hidden_state float32 batch,4,100')],
      nodes: [{ type: 'Identity', inputs: ['input_features'], outputs: ['last_hidden_state'] }],
    }
    const files = {
      ...encoder({ ...config, max_target_positions: 448 }),
      ...generation({
        max_length: 40,
        no_timestamps_token_id: 80,
        lang_to_id: { '<|en|>': 6 },
        task_to_id: { transcribe: 8, translate: 9 },
        max_initial_timestamp_index: 50,
        alignment_heads: [[0, 0]],
      }),
      'm/preprocessor_config.json': json({
        feature_extractor_type: 'WhisperFeatureExtractor',
        feature_size: 4,
        chunk_length: 1,
      }),
      ...graphs,
      'm/encoder_model.onnx': features,
      'm/decoder_model_merged.onnx': decoderGraph('merged', { isMasked: false }),
    }
    const { entry, binding, printed } = await addFolder(files)
    const speech = {
      languages: { en: 6 },
      tasks: { transcribe: 8, translate: 9 },
      noTimestamps: 80,
      positions: 448,
      maxInitialTimestamp: 50,
    }
    expect(decoderOf(entry)?.speech).toEqual(speech)
    const attending = decoderGraph('merged', { isMasked: false, attends: true })
    const timed = await addFolder({ ...files, 'm/decoder_model_merged.onnx': attending })
    expect(decoderOf(timed.entry)?.speech).toEqual({ ...speech, alignment: [[0, 0]] })
    expect(binding('audio')).toEqual({
      tensor: 'input_features',
      shape: [null, 4, 100],
      audio: { rate: 16_000, mel: { bands: 4, window: 400, hop: 160, frames: 100 } },
    })
    expect(entry.signature.outputs.map(({ name }) => name)).toEqual(['text', 'chunks', 'language'])
    expect(printed).toContain('audio: new Float32Array(16000),')
  })

  test.each<[string, Files, BindingFlags, string]>([
    [
      'without a decoder',
      { 'm/decoder_model_merged.onnx': '' },
      {},
      'it has no decoder_model_merged.onnx or decoder_model.onnx. It has encoder_model.onnx',
    ],
    [
      'without a tokenizer that pages read',
      { 'm/tokenizer.json': '', 'm/source.spm': 'x' },
      {},
      'has no tokenizer.json, but source.spm, which pages cannot read.',
    ],
    [
      'without a token to begin with',
      { 'm/config.json': json({ ...config, decoder_start_token_id: null }) },
      {},
      'has no decoder_start_token_id, neither in generation_config.json nor in config.json.',
    ],
    ['with an option of another model', {}, { step: ['x=softmax'] }, '--step describes'],
    [
      'of sounds',
      { 'm/encoder_model.onnx': SOUND },
      {},
      'whose encoder takes input_values, which is not supported yet.',
    ],
  ])('is refused %s', async (_, changed, flags, message) => {
    const files = { ...encoder(config), ...graphs, 'm/other.onnx': STATES, ...changed }
    const kept = Object.entries(files).filter(([, content]) => content !== '')
    await expect(addFolder(Object.fromEntries(kept), flags)).rejects.toThrow(message)
  })
})

test('Keys and values of a cache are no images', async () => {
  const cache = toPort('past_key_values.0.key float32 batch,4,32,64')
  const graph = {
    inputs: [cache],
    outputs: [{ ...cache, name: 'y' }],
    nodes: [{ type: 'Identity', inputs: [cache.name], outputs: ['y'] }],
  }
  const folder = freshFolder({ 'm.onnx': graph })
  const { entry } = await addIn(folder, 'm.onnx')
  expect(entry).toMatchObject({ signature: { inputs: [{ type: 'float32' }] } })
})

describe('A model of tokens', () => {
  const logits = (count: number): Graph => ({
    ...ENCODER,
    outputs: [toPort(`logits float32 batch,tokens,${count}`)],
    nodes: [
      ...ENCODER.nodes.slice(0, 3),
      {
        type: 'Concat',
        inputs: Array<string>(count).fill('column'),
        outputs: ['logits'],
        attributes: { axis: 2 },
      },
    ],
  })
  const names = (entry: PredictorEntry, side: 'inputs' | 'outputs') =>
    entry.signature[side].map(({ name, type }) => `${name} ${type}`)

  test('has entities of a text, joined as a prediction asks', async () => {
    const config = encoder(
      classes(['O', 'B-LOC', 'I-LOC'], { architectures: ['BertForTokenClassification'] }),
    )
    const { entry, binding } = await addFolder({ ...config, 'm/model.onnx': logits(3) })
    expect(names(entry, 'inputs')).toEqual(['text string', 'aggregation_strategy string'])
    expect(names(entry, 'outputs')).toEqual(['entities list'])
    expect(binding('entities')?.steps).toMatchObject([
      { step: 'softmax' },
      {
        step: 'entities',
        labels: { file: 'config.json', key: 'id2label' },
        byInput: 'aggregation_strategy',
      },
    ])
  })

  test('answers a question from windows of a context', async () => {
    const scores = (name: string) => toPort(`${name} float32 batch,tokens`)
    const graph: Graph = {
      inputs: TOKENS,
      outputs: ['start_logits', 'end_logits'].map(scores),
      nodes: ['start_logits', 'end_logits'].map((name) => ({
        type: 'Cast',
        inputs: [name.startsWith('s') ? 'input_ids' : 'attention_mask'],
        outputs: [name],
        attributes: { to: 1 },
      })),
    }
    const config = encoder({ architectures: ['BertForQuestionAnswering'] })
    const { entry, binding } = await addFolder({ ...config, 'm/model.onnx': graph })
    expect(names(entry, 'inputs')).toEqual(['question string', 'context string'])
    expect(names(entry, 'outputs')).toEqual(['answer dict'])
    expect(binding('question')?.text).toMatchObject({ most: 64, overlap: 32, pair: 'context' })
    expect(binding('answer')).toEqual({
      tensor: 'start_logits',
      steps: [{ step: 'span', end: 'end_logits' }],
    })
  })

  test('fills in the token that its tokenizer masks', async () => {
    const config = encoder({ architectures: ['BertForMaskedLM'] })
    const { entry, binding } = await addFolder({
      ...config,
      'm/tokenizer_config.json': json({ mask_token: { content: '<mask>' } }),
      'm/model.onnx': logits(4),
    })
    expect(names(entry, 'outputs')).toEqual(['tokens list'])
    expect(binding('tokens')?.steps?.at(-1)).toMatchObject({ step: 'fill-mask', mask: '<mask>' })
  })
})
