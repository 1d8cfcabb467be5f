/**
 * Weights and a tokenizer for a library, where those of a real model cannot be had. The values are
 * random, but always the same, in the shapes that the library lists.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { toHalves } from '../bench/models/quantize.ts'
import { createChance } from '../support/random.ts'

interface Parameter<Dimension> {
  name: string
  /** A dimension that the library leaves open has a name. */
  shape: Dimension[]
  dtype: string
}

type Sized = Parameter<number>

/** What MLC compiles into each library. */
interface Metadata {
  quantization: string
  params: Parameter<number | string>[]
}

interface TokenizerFile {
  added_tokens: { id: number; content: string }[]
  model: { vocab: Record<string, number> }
}

const GUIDE = join(import.meta.dirname, '../../demo/models/guide')

/** Quantizations that are made: none, and 4 bits a value. */
const QUANTIZATIONS = ['q0f32', 'q4f32_1', 'q4f16_1']

/** Values that share a scale, and their standard deviation without it. */
const GROUP = 32
const DEVIATION = 4.3

/** Bytes of one file of weights, unless it has a single parameter. */
const SHARD_BYTES = 2 ** 25

/** A tokenizer with this many tokens, and what MLC's own file says of it and of chats. */
interface Vocabulary {
  tokenizer: object
  chat: object
}

/**
 * Writes the folder that MLC would leave beside this library. `createVocabulary` gets the size of the
 * vocabulary that the library has; the guide's, if it leaves that open. Default: the guide's, grown.
 */
export function writeRandomWeights(
  folder: string,
  library: string,
  createVocabulary: (size: number) => Vocabulary = createGuideVocabulary,
): void {
  mkdirSync(folder, { recursive: true })
  const { params, ...compiled } = readMetadata(readFileSync(library))
  if (!QUANTIZATIONS.includes(compiled.quantization))
    throw new Error(
      `Random weights can be ${QUANTIZATIONS.join(' or ')}, but not those of ${library}.`,
    )
  // The embeddings come first.
  const open = params[0]?.shape[0]
  const size = typeof open === 'number' ? open : guideTokenizer().size
  const sized = params.map(({ shape, ...rest }) => ({
    ...rest,
    shape: shape.map((each) => (typeof each === 'number' ? each : size)),
  }))
  const { tokenizer, chat } = createVocabulary(size)
  const manifest = { metadata: {}, records: writeShards(folder, sized) }
  const files = {
    'tokenizer.json': tokenizer,
    'mlc-chat-config.json': { ...compiled, ...SETTINGS, ...chat, vocab_size: size },
    // Versions of WebLLM differ in the name.
    'ndarray-cache.json': manifest,
    'tensor-cache.json': manifest,
  }
  for (const [name, content] of Object.entries(files))
    writeFileSync(join(folder, name), JSON.stringify(content))
}

/** A library holds its metadata as a text of JSON, with its length before it. */
function readMetadata(library: Buffer): Metadata {
  const start = library.indexOf('{"model_type"')
  if (start < 8) throw new Error('The library has no metadata.')
  const length = Number(library.readBigUInt64LE(start - 8))
  return JSON.parse(library.toString('utf8', start, start + length)) as Metadata
}

/** Returns the guide's tokenizer, and the number of its tokens. */
function guideTokenizer() {
  const tokenizer = JSON.parse(readFileSync(join(GUIDE, 'tokenizer.json'), 'utf8')) as TokenizerFile
  const size = Object.keys(tokenizer.model.vocab).length + tokenizer.added_tokens.length
  return { tokenizer, size }
}

function createGuideVocabulary(size: number): Vocabulary {
  const { tokenizer, size: own } = guideTokenizer()
  return { tokenizer: growVocabulary(tokenizer, own, size), chat: describeChat(tokenizer) }
}

/** Adds a word for each id that the model has and the tokenizer has not. */
function growVocabulary(tokenizer: TokenizerFile, own: number, size: number): TokenizerFile {
  const words = Array.from({ length: size - own }, (_, at) => [`Ġw${own + at}`, own + at] as const)
  const vocab = { ...tokenizer.model.vocab, ...Object.fromEntries(words) }
  return { ...tokenizer, model: { ...tokenizer.model, vocab } }
}

/** What MLC's own file says with any vocabulary. */
const SETTINGS = {
  tokenizer_files: ['tokenizer.json'],
  temperature: 1,
  top_p: 1,
  repetition_penalty: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
}

const describeChat = ({ added_tokens: added }: TokenizerFile) => ({
  tokenizer_info: { token_postproc_method: 'byte_level' },
  eos_token_id: added.find(({ content }) => content === '<|im_end|>')?.id,
  conv_template: {
    system_template: '<|im_start|>system\n{system_message}<|im_end|>\n',
    system_message: 'be kind',
    roles: {
      user: '<|im_start|>user',
      assistant: '<|im_start|>assistant',
      tool: '<|im_start|>tool',
    },
    role_templates: {
      user: '{user_message}',
      assistant: '{assistant_message}',
      tool: '{tool_message}',
    },
    seps: ['<|im_end|>\n'],
    role_content_sep: '\n',
    role_empty_sep: '\n',
    stop_str: ['<|im_end|>'],
    stop_token_ids: [],
  },
})

/** Returns the records of the files it writes. */
function writeShards(folder: string, parameters: readonly Sized[]): object[] {
  const chance = createChance(1)
  const shards: { parts: Buffer[]; records: object[]; nbytes: number }[] = []
  for (const parameter of parameters) {
    const part = fill(parameter, () => chance.below(2 ** 32))
    let shard = shards.at(-1)
    if (!shard || shard.nbytes + part.length > SHARD_BYTES)
      shards.push((shard = { parts: [], records: [], nbytes: 0 }))
    const { name, shape, dtype } = parameter
    const place = { nbytes: part.length, byteOffset: shard.nbytes }
    shard.records.push({ name, shape, dtype, format: 'raw', ...place })
    shard.parts.push(part)
    shard.nbytes += part.length
  }
  return shards.map(({ parts, records, nbytes }, index) => {
    const dataPath = `params_shard_${index}.bin`
    writeFileSync(join(folder, dataPath), Buffer.concat(parts))
    return { dataPath, format: 'raw-shard', nbytes, records }
  })
}

/** Bytes of a parameter: what goes through a matrix comes out about as large, and norms change nothing. */
function fill({ name, shape, dtype }: Sized, random: () => number): Buffer {
  const length = shape.reduce((product, each) => product * each, 1)
  const inputs = shape.at(-1) ?? 1
  const reach = Math.sqrt(3 / inputs)
  const valueOf = (): number => {
    if (name.endsWith('scale')) return 1 / (DEVIATION * Math.sqrt(inputs * GROUP))
    if (shape.length > 1) return (random() / 2 ** 31 - 1) * reach
    return name.endsWith('bias') ? 0 : 1
  }
  if (dtype === 'uint32')
    return Buffer.from(Uint32Array.from({ length }, () => centre(random())).buffer)
  const values = Float32Array.from({ length }, valueOf)
  return Buffer.from((dtype === 'float16' ? toHalves(values) : values).buffer)
}

/** Makes each 15 among eight values of 4 bits a 7, which stands for 0, so that they are 0 on average. */
function centre(packed: number): number {
  const highest = packed & (packed >>> 1) & (packed >>> 2) & (packed >>> 3) & 0x11111111
  return packed ^ (highest << 3)
}
