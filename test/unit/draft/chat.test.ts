/** Folders of chat models: what is drafted from them, and what is refused because it cannot run. */
import { describe, expect, test } from 'vitest'
import type { Dtype, HubFile } from '../../../src/catalog/hub/variants.ts'
import type { Folder } from '../../../src/draft/folder.ts'
import { kindOf, planKind } from '../../../src/draft/kind.ts'
import type { Plan } from '../../../src/draft/plan.ts'
import { createWindow } from '../../../src/engine/onnx/protobuf.ts'
import type { Device } from '../../../src/types/index.ts'
import { type Graph, onnxFile } from '../../support/onnx.ts'
import { fileOf, SPECIAL_NAMES, TEMPLATE } from '../../support/tokenizers.ts'
import { toPort, weight } from '../cli/graphs.ts'

type Files = Readonly<Record<string, Graph | string | object>>

/** A folder in memory, with its files by their paths. */
function openFiles(files: Files): { folder: Folder; listed: HubFile[] } {
  const blobs = new Map(
    Object.entries(files).map(([path, content]) => [path, new Blob([toBytes(content)])]),
  )
  const folder: Folder = {
    nameOf: (path) => (path === '' ? 'mine' : `mine/${path}`),
    sizeOf: (path) => blobs.get(path)?.size,
    open: async (path) => {
      const blob = blobs.get(path) as Blob
      return { size: blob.size, ...createWindow(blob), close: async () => undefined }
    },
  }
  const listed = Array.from(blobs, ([path, { size }]) => {
    return { path, bytes: size, sha256: null, blobId: '' }
  })
  return { folder, listed }
}

function toBytes(content: Files[string]): BlobPart {
  if (typeof content === 'string') return content
  return 'nodes' in content ? onnxFile(content as Graph) : JSON.stringify(content)
}

interface Options {
  devices?: readonly Device[]
  dtypes?: readonly Dtype[]
}

function plan(files: Files, { devices = ['webgpu', 'wasm'], dtypes }: Options = {}): Promise<Plan> {
  const { folder, listed } = openFiles(files)
  const keep = (name: string) => `--tensor ${name}`
  const options = { devices, dtypes: dtypes ?? null, tensors: new Set<string>(), keep }
  return planKind(folder, kindOf('mine', listed), listed, options)
}

const idsOf = ({ implementations }: Plan): string[] => implementations.map(({ id }) => id)

/** Returns the content of a made file of the first implementation. */
const madeBy = ({ implementations }: Plan, name: string): unknown => {
  const { text = '' } = implementations[0]?.items.find((item) => item.name === name) ?? {}
  return JSON.parse(text)
}

const INPUTS = ['input_ids int64 batch,n', 'attention_mask int64 batch,all']
const cachesOf = (type: string, shape = 'batch,2,past,8'): string[] =>
  ['key', 'value'].map((part) => `past_key_values.0.${part} ${type} ${shape}`)

/** The ports of a decoder. Nothing is computed, since only its inputs and outputs are read. */
function decoder(
  type = 'float32',
  { inputs = [...INPUTS, ...cachesOf(type)], nodes = [] as Graph['nodes'], logits = 'logits' } = {},
): Graph {
  const presents = ['key', 'value'].map((part) => `present.0.${part} ${type} batch,2,all,8`)
  return {
    inputs: inputs.map(toPort),
    outputs: [`${logits} ${type} batch,n,16`, ...presents].map(toPort),
    nodes: [{ type: 'Cast', inputs: ['input_ids'], outputs: [logits] }, ...nodes],
  }
}

const product = (bits: number): Graph['nodes'][number] => ({
  type: 'MatMulNBits',
  domain: 'com.microsoft',
  inputs: ['a', 'b'],
  outputs: [`c${bits}`],
  attributes: { bits },
})

const integers = { type: 'MatMulInteger', inputs: ['a', 'b'], outputs: ['c'] }
const bitsandbytes = { ...integers, type: 'MatMulBnb4', domain: 'com.microsoft' } as const

const TOKENIZER = {
  'tokenizer.json': fileOf('bytes'),
  'tokenizer_config.json': SPECIAL_NAMES,
  'chat_template.jinja': TEMPLATE,
}
const CONFIG = { 'config.json': { max_position_embeddings: 512, eos_token_id: 2 } }
const WEB = { ...TOKENIZER, ...CONFIG, 'onnx/model.onnx': decoder() }

const MODEL = {
  type: 'llama',
  context_length: 256,
  vocab_size: 16,
  bos_token_id: 1,
  eos_token_id: [2, 5],
  pad_token_id: 0,
  decoder: {
    filename: 'model.onnx',
    hidden_size: 32,
    head_size: 8,
    num_attention_heads: 4,
    num_key_value_heads: 2,
    num_hidden_layers: 1,
  },
}
const SEARCH = { do_sample: true, temperature: 0.7, top_k: 20, top_p: 0.8, max_length: 256 }

/** A folder as the model builder of ONNX Runtime GenAI writes it. */
const genai = (graph: Graph = decoder(), model: object = MODEL): Files => ({
  ...TOKENIZER,
  'genai_config.json': { model, search: SEARCH },
  'model.onnx': graph,
})

describe('A folder of ONNX Runtime GenAI', () => {
  test('is a chat model, whose configuration is made from genai_config.json', async () => {
    const graph = {
      ...decoder(),
      weights: [weight('w', [3], { location: 'model.onnx.data', offset: 0, length: 3 })],
    }
    const drafted = await plan({ ...genai(graph), 'model.onnx.data': 'abc' })
    expect(drafted.entry).toMatchObject({ type: 'model', maxInputTokens: 256 })
    expect(drafted.notes).toEqual([])
    expect(drafted.implementations[0]?.items.map(({ name }) => name).toSorted()).toEqual([
      'chat_template.jinja',
      'config.json',
      'generation_config.json',
      'model.onnx',
      'model.onnx.data',
      'tokenizer.json',
      'tokenizer_config.json',
    ])
    expect(madeBy(drafted, 'config.json')).toEqual({
      model_type: 'llama',
      max_position_embeddings: 256,
      vocab_size: 16,
      bos_token_id: 1,
      eos_token_id: [2, 5],
      pad_token_id: 0,
      hidden_size: 32,
      head_dim: 8,
      num_attention_heads: 4,
      num_key_value_heads: 2,
      num_hidden_layers: 1,
    })
    expect(madeBy(drafted, 'generation_config.json')).toEqual({
      bos_token_id: 1,
      eos_token_id: [2, 5],
      do_sample: true,
      temperature: 0.7,
      top_k: 20,
      top_p: 0.8,
    })
  })

  test('keeps the files of configuration that it has', async () => {
    const files = { ...genai(), ...CONFIG, 'generation_config.json': {} }
    const { implementations, entry } = await plan(files)
    expect(implementations[0]?.items.filter(({ text }) => text !== undefined)).toEqual([])
    expect(entry).toMatchObject({ maxInputTokens: 512 })
  })

  test.each<[string, Graph, string[]]>([
    ['32-bit floats', decoder(), ['fp32-webgpu', 'fp32-wasm']],
    ['16-bit floats', decoder('float16'), ['fp16-webgpu']],
    ['4 bits', decoder('float32', { nodes: [product(4)] }), ['q4-webgpu', 'q4-wasm']],
    [
      '4 bits, and 8 in a few layers',
      decoder('float32', { nodes: [product(8), product(4)] }),
      ['q4-webgpu', 'q4-wasm'],
    ],
    ['4 bits between halves', decoder('float16', { nodes: [product(4)] }), ['q4f16-webgpu']],
    ['8 bits', decoder('float32', { nodes: [product(8)] }), ['q8-wasm']],
    ['products of integers', decoder('float32', { nodes: [integers] }), ['q8-wasm']],
    ['4 bits of bitsandbytes', decoder('float32', { nodes: [bitsandbytes] }), ['bnb4-wasm']],
  ])('has the precision of its graph: %s', async (_, graph, ids) => {
    const drafted = await plan(genai(graph))
    expect(idsOf(drafted)).toEqual(ids)
    const [first] = drafted.implementations
    const features = ids[0]?.includes('16') ? ['shader-f16'] : undefined
    expect(first?.requires?.features).toEqual(features)
  })

  test('takes its precision as the wanted one, on all devices', async () => {
    const graph = decoder('float16', { nodes: [product(4)] })
    const ids = ['q4f16-webgpu', 'q4f16-wasm']
    expect(idsOf(await plan(genai(graph), { dtypes: ['q4f16'] }))).toEqual(ids)
    await expect(plan(genai(graph), { dtypes: ['q4'] })).rejects.toThrow(
      '--dtypes q4: the weights of mine/model.onnx are q4f16. Use --dtypes q4f16',
    )
    await expect(plan(genai(graph), { devices: ['wasm'] })).rejects.toThrow(
      'The weights of mine/model.onnx are q4f16, which is for webgpu.',
    )
  })

  test.each<[string, object, RegExp]>([
    ['vision', { ...MODEL, vision: {} }, /describes a pipeline with "vision".*takes text alone/],
    ['speech', { ...MODEL, speech: {} }, /describes a pipeline with "speech"/],
    ['an encoder', { ...MODEL, encoder: {} }, /describes a pipeline with "encoder"/],
    ['several graphs', { ...MODEL, decoder: { pipeline: [] } }, /decoder of several graphs/],
    ['no decoder', { type: 'llama' }, /genai_config\.json has no "model" with a "decoder"/],
    ['another graph', { ...MODEL, decoder: { filename: 'a.onnx' } }, /there is no mine\/a\.onnx/],
  ])('is refused by the name of what no engine runs: %s', async (_, model, why) => {
    await expect(plan(genai(decoder(), model))).rejects.toMatchObject({
      kind: 'invalid_request',
      message: expect.stringMatching(why),
    })
  })
})

test('A decoder beside config.json is a chat model, although no folder is named onnx', async () => {
  const files = { ...TOKENIZER, ...CONFIG, 'model.onnx': decoder() }
  expect((await plan(files)).entry).toMatchObject({ type: 'model', maxInputTokens: 512 })
})

describe('What the engine refuses is refused before it is added', () => {
  const cached = (shape: string): Graph =>
    decoder('float32', { inputs: [...INPUTS, ...cachesOf('float32', shape)] })
  const withInputs = (...inputs: string[]): Graph =>
    decoder('float32', { inputs: [...inputs, ...cachesOf('float32')] })
  const causal = { architectures: ['LlamaForCausalLM'], ...CONFIG['config.json'] }
  const uncached = {
    ...decoder('float32', { inputs: INPUTS }),
    outputs: [toPort('logits float32')],
  }
  const away = [weight('w', [3], { location: 'model.onnx_data_1', offset: 0, length: 3 })]
  const wordPiece = { ...fileOf('bytes'), decoder: { type: 'WordPiece' } }

  test.each<[string, Files, RegExp]>([
    ['no logits', { 'onnx/model.onnx': decoder('float32', { logits: 'scores' }) }, /named logits/],
    [
      'an unknown input',
      { 'onnx/model.onnx': withInputs(...INPUTS, 'pixels float32 1') },
      /mine\/onnx\/model\.onnx cannot run as a chat model: its input pixels.* Export the model again/,
    ],
    [
      'no KV cache',
      { 'config.json': causal, 'onnx/model.onnx': uncached },
      /no inputs for a KV cache/,
    ],
    [
      'an unknown dimension',
      { 'onnx/model.onnx': cached('batch*num_heads,2,past,8') },
      /cache dimension batch\*num_heads, of \S+, is unknown/,
    ],
    [
      'no graph of embeddings',
      { 'onnx/model.onnx': withInputs('inputs_embeds float32 batch,n,8') },
      /no input named input_ids, and no other graph/,
    ],
    [
      'missing weights',
      { 'onnx/model.onnx': { ...decoder(), weights: away } },
      /keeps weights in model\.onnx_data_1, which is not beside it/,
    ],
    ['no chat template', { 'chat_template.jinja': '' }, /has no chat template/],
    [
      'a broken chat template',
      { 'chat_template.jinja': '{% if %}' },
      /chat template cannot be read/,
    ],
    ['an unknown tokenizer', { 'tokenizer.json': wordPiece }, /unsupported decoder.*WordPiece/],
    ['no vocabulary', { 'tokenizer.json': {} }, /tokenizer\.json has no vocabulary/],
  ])('%s', async (_, changes, why) => {
    await expect(plan({ ...WEB, ...changes })).rejects.toMatchObject({
      kind: 'invalid_request',
      message: expect.stringMatching(why),
    })
  })

  test('no end token', async () => {
    const files = { ...WEB, 'config.json': {}, 'tokenizer_config.json': {} }
    await expect(plan(files)).rejects.toThrow('no end token (`eos_token_id`)')
  })

  test.each(['tokenizer.json', 'tokenizer_config.json'])('no %s', async (name) => {
    const files = Object.entries(genai()).filter(([path]) => path !== name)
    await expect(plan(Object.fromEntries(files))).rejects.toThrow(
      `mine has no ${name}, which a chat model needs.`,
    )
  })

  const bad = decoder('float32', { logits: 'scores' })

  test('a precision, which is left out and named', async () => {
    const files = {
      ...WEB,
      'onnx/model_q4.onnx': bad,
      'onnx/model_fp16.onnx': { ...decoder(), weights: away },
    }
    const { notes, ...drafted } = await plan(files)
    expect(idsOf({ notes, ...drafted })).toEqual(['fp32-webgpu', 'fp32-wasm'])
    expect(notes.toSorted()).toEqual([
      expect.stringMatching(/^fp16 was left out: mine\/onnx\/model_fp16\.onnx keeps weights in/),
      expect.stringMatching(/^q4 was left out: mine\/onnx\/model_q4\.onnx cannot run/),
    ])
  })

  const taken = withInputs('inputs_embeds float32 batch,n,8', 'attention_mask int64 batch,all')
  const embed = {
    inputs: [toPort('input_ids int64 batch,n')],
    outputs: [toPort('inputs_embeds float32 batch,n,8')],
    nodes: [{ type: 'Cast', inputs: ['input_ids'], outputs: ['inputs_embeds'] }],
  }

  test('a processor of images', async () => {
    const files = {
      ...TOKENIZER,
      'config.json': { ...CONFIG['config.json'], model_type: 'qwen2_vl', vision_config: {} },
      'preprocessor_config.json': { resample: 9 },
      'onnx/decoder_model_merged.onnx': taken,
      'onnx/embed_tokens.onnx': embed,
      'onnx/vision_encoder.onnx': embed,
    }
    await expect(plan(files)).rejects.toThrow('resample 9 of its image processor')
    const drafted = await plan({ ...files, 'preprocessor_config.json': {} })
    expect(drafted.entry).toMatchObject({ capabilities: { imageInput: true } })
  })

  test('a precision whose embeddings are missing', async () => {
    const files = {
      ...TOKENIZER,
      ...CONFIG,
      'onnx/decoder_model_merged_q4.onnx': taken,
      'onnx/embed_tokens_q4.onnx': embed,
      'onnx/decoder_model_merged.onnx': taken,
    }
    const drafted = await plan(files)
    expect(idsOf(drafted)).toEqual(['q4-webgpu', 'q4-wasm'])
    const why = 'mine/onnx has a decoder in fp32, but no embed_tokens for it.'
    expect(drafted.notes).toEqual([
      `fp32 was left out: ${why} Export all graphs in that precision.`,
    ])
    await expect(plan(files, { dtypes: ['fp32'] })).rejects.toThrow(why)
  })

  test('all precisions, each with its reason', async () => {
    const files = { ...WEB, 'onnx/model.onnx': bad, 'onnx/model_q4.onnx': bad }
    await expect(plan(files)).rejects.toThrow(
      /^No precision of mine can run:\n- q4: mine\/onnx\/model_q4.*\n- fp32: mine\/onnx\/model\.onnx/,
    )
  })
})
