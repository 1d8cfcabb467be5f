/** Drafts predictors of encoder-decoders: texts or images in, a text out. */
import {
  type EncoderDecoder,
  ENCODER_NAME,
  findContextTokens,
  findEncoderDecoders,
  type HubFile,
  WRITER_NAMES,
} from '../catalog/hub/variants.ts'
import type { Implementation, PredictorEntry } from '../catalog/schema.ts'
import { ENCODED } from '../predictor/bind.ts'
import { toAttentionOutput } from '../predictor/speech.ts'
import type { Folder } from './folder.ts'
import type { OnnxModel } from './model.ts'
import {
  type Item,
  itemsOf,
  type Plan,
  type Planned,
  type PlanOptions,
  readChecked,
  titleOf,
  toPlanned,
} from './plan.ts'
import { refuse } from './refuse.ts'
import { type Draft, draftSignature } from './signature.ts'
import {
  architectureOf,
  type Config,
  positive,
  readTaskFiles,
  type TaskFiles,
} from './tasks/files.ts'
import { type Generation, readGeneration } from './tasks/generation.ts'
import { draftImages } from './tasks/images.ts'

type Speech = NonNullable<Generation['layout']['speech']>

const OUTPUT = 'text'
const TOKENIZER = 'tokenizer.json'
const AUDIO = 'audio'

/** Settings of Whisper's feature extractor, which files may leave out. */
const WHISPER = { rate: 16_000, window: 400, hop: 160, seconds: 30, bands: 80 }

/** Architectures that write texts with an encoder and a decoder. */
const GENERATES = /(ForConditionalGeneration|MTModel|EncoderDecoderModel|ForSpeechSeq2Seq)$/

/** Graphs of an encoder-decoder. */
const PARTS = /^(encoder_model|decoder_model|decoder_with_past_model)[_.]/

/** Returns `true` for an encoder-decoder, by its configuration or by the names of its graphs. */
export function isEncoderDecoder(config: Config, paths: readonly string[]): boolean {
  const names = paths.map((path) => path.slice(path.lastIndexOf('/') + 1))
  const parts = names.filter((name) => name.endsWith('.onnx') && PARTS.test(name))
  const isDivided = ['encoder', 'decoder'].every((part) =>
    parts.some((name) => name.startsWith(part)),
  )
  return (
    isDivided || (config['is_encoder_decoder'] === true && GENERATES.test(architectureOf(config)))
  )
}

/** Resolves with the plan of an encoder-decoder in the layout of web exports. Rejects as `planGraph`. */
export async function planEncoderDecoder(
  folder: Folder,
  files: readonly HubFile[],
  config: Config,
  options: PlanOptions,
): Promise<Plan> {
  refuseOptions(options)
  const { readGraph = readChecked } = options
  const found = findEncoderDecoders(files, options.dtypes, options.precision).filter(({ device }) =>
    options.devices.includes(device),
  )
  const [best] = found
  if (!best) throw noGraphs(folder, files, config, options)
  const texts = await readTaskFiles(folder, config)
  if (!texts.hasTokenizer) throw noTokenizer(folder)
  const generation = readGeneration(texts)
  if (!generation)
    throw refuse(
      `${folder.nameOf('')} has no decoder_start_token_id, neither in generation_config.json nor in config.json.`,
      'Copy generation_config.json from the original model.',
    )
  const models = new Map<string, OnnxModel>()
  const read = async ([main]: readonly HubFile[]): Promise<OnnxModel> => {
    const path = main?.path ?? ''
    const model = models.get(path) ?? (await readGraph(folder, path))
    models.set(path, model)
    return model
  }
  const drafted = draftInputs(folder, await read(best.encoder), texts, options)
  const { signature, bindings, notes } = drafted
  const implementations: Planned[] = []
  for (const one of found) {
    const graphs = [one.encoder, one.decoder, ...(one.next ? [one.next] : [])]
    const items: Item[] = listTexts(folder)
    for (const graph of graphs) {
      const path = graph[0]?.path ?? ''
      const own = itemsOf(folder, path, await read(graph))
      items.push(...own.map((item) => ({ ...item, name: item.path })))
    }
    const { dtype, device, features } = one
    const decoders = await Promise.all(graphs.slice(1).map(read))
    const decoder = toDecoder(one, generation, decoders)
    implementations.push(
      toPlanned(`${dtype}-${device}`, device, features.length > 0, items, bindings, decoder),
    )
  }
  return {
    entry: {
      type: 'predictor',
      name: titleOf(folder.nameOf('')),
      signature: { ...signature, inputs: [...signature.inputs, ...generation.inputs] },
    },
    implementations,
    notes: [...notes, ...generation.notes],
  }
}

const toDecoder = (
  { encoder, decoder, next }: EncoderDecoder,
  { layout }: Generation,
  decoders: readonly OnnxModel[],
): NonNullable<Implementation['decoder']> => ({
  output: OUTPUT,
  encoder: encoder[0]?.path ?? '',
  graph: decoder[0]?.path ?? '',
  ...(next && { nextGraph: next[0]?.path ?? '' }),
  tokenizer: TOKENIZER,
  ...layout,
  ...(layout.speech && { speech: withMadeAlignment(layout.speech, decoders) }),
})

/** Returns the layout without heads whose attention the graphs do not return. */
function withMadeAlignment(
  { alignment, ...speech }: Speech,
  decoders: readonly OnnxModel[],
): Speech {
  const isMade = alignment?.every(([layer]) =>
    decoders.every(({ outputs }) => outputs.some(({ name }) => name === toAttentionOutput(layer))),
  )
  return isMade ? { ...speech, alignment } : speech
}

function listTexts(folder: Folder): Item[] {
  return [TOKENIZER, 'tokenizer_config.json'].flatMap((path): Item[] => {
    const bytes = folder.sizeOf(path)
    return bytes === undefined ? [] : [{ type: 'tokenizer', name: path, path, bytes }]
  })
}

/** Returns the inputs of the encoder, and the text as the only output. */
function draftInputs(
  folder: Folder,
  encoder: OnnxModel,
  files: TaskFiles,
  options: PlanOptions,
): Draft {
  const limit = { name: TOKENIZER, most: maxTextTokens(files), truncate: 'end' as const }
  const speech = draftSpeech(encoder, files)
  if (speech) return speech
  const base = draftSignature(encoder, { ...options, tokenizer: limit })
  const { signature, bindings, notes } = draftImages(base, encoder, files, options)
  const isKnown = signature.inputs.every(({ name, type }) => name === 'text' || type === 'image')
  if (!isKnown || !encoder.outputs.some(({ name }) => name === ENCODED)) {
    const inputs = encoder.inputs.map(({ name }) => name).join(', ')
    const name = architectureOf(files.config) || 'its architecture'
    throw refuse(
      `${folder.nameOf('')} is an encoder-decoder (${name}) whose encoder takes ${inputs}, which is ` +
        'not supported yet.',
      'To use its parts as predictors, add each graph file alone.',
    )
  }
  const outputs: PredictorEntry['signature']['outputs'] = [
    { name: OUTPUT, type: 'string', description: 'The text that the model writes.' },
  ]
  const read = Object.entries(bindings).filter(([name]) =>
    signature.inputs.some((input) => input.name === name),
  )
  return { signature: { ...signature, outputs }, bindings: Object.fromEntries(read), notes }
}

/** Returns the draft of an encoder of speech, which hears spectrograms; `null` if it is none. */
function draftSpeech({ inputs }: OnnxModel, { preprocessor, config }: TaskFiles): Draft | null {
  const features = inputs.find(({ name }) => name === 'input_features')
  const isWhisper = String(preprocessor['feature_extractor_type']).startsWith('Whisper')
  if (!features || !isWhisper) return null
  const rate = positive(preprocessor['sampling_rate']) ?? WHISPER.rate
  const hop = positive(preprocessor['hop_length']) ?? WHISPER.hop
  const seconds = positive(preprocessor['chunk_length']) ?? WHISPER.seconds
  const mel = {
    bands:
      positive(preprocessor['feature_size']) ?? positive(config['num_mel_bins']) ?? WHISPER.bands,
    window: positive(preprocessor['n_fft']) ?? WHISPER.window,
    hop,
    frames: Math.floor((seconds * rate) / hop),
  }
  const shape = [null, mel.bands, mel.frames]
  return {
    signature: {
      inputs: [{ name: AUDIO, type: 'float32', description: 'Speech, of any length.' }],
      outputs: [
        { name: OUTPUT, type: 'string', description: 'What is said.' },
        {
          name: 'chunks',
          type: 'list',
          description: 'Parts of the text with their times in seconds, if timestamps are wanted.',
        },
        { name: 'language', type: 'string', description: 'Code of the language, such as en.' },
      ],
    },
    bindings: { [AUDIO]: { tensor: features.name, shape, audio: { rate, mel } } },
    notes: [],
  }
}

/** Families whose positions are relative, so they have no limit of their own. */
const RELATIVE_FAMILIES = /^(long|u?m|switch_)?t(5|ransformers)$/

/** Maximum number of tokens of a text for these, since its memory grows with their square. */
const MAX_RELATIVE_TOKENS = 4_096

const DEFAULT_MAX_TEXT_TOKENS = 512

function maxTextTokens({ config }: TaskFiles): number {
  if (RELATIVE_FAMILIES.test(String(config['model_type']))) return MAX_RELATIVE_TOKENS
  const own = positive(config['max_encoder_position_embeddings'])
  return own ?? findContextTokens(config) ?? DEFAULT_MAX_TEXT_TOKENS
}

/** Throws `invalid_request` for options that describe other inputs and outputs. */
function refuseOptions({ tensors, keep, wishes }: PlanOptions): void {
  const [tensor] = tensors
  const given = tensor === undefined ? wishes?.options[0] : keep(tensor)
  if (given === undefined) return
  throw refuse(
    `${given} describes the inputs and outputs of one graph, and this is an encoder-decoder.`,
    'Leave it out, or edit the entry in the catalog.',
  )
}

function noGraphs(
  folder: Folder,
  files: readonly HubFile[],
  config: Config,
  { devices, dtypes }: PlanOptions,
): Error {
  const names = files
    .map(({ path }) => path.replace(/^.*\//, ''))
    .filter((one) => one.endsWith('.onnx'))
  const isThere = (wanted: string): boolean => names.some((name) => name.startsWith(wanted))
  const name = architectureOf(config) || 'its architecture'
  const missing = isThere(ENCODER_NAME) ? WRITER_NAMES.join('.onnx or ') : ENCODER_NAME
  const isWhole = isThere(ENCODER_NAME) && WRITER_NAMES.some(isThere)
  const wanted = dtypes ? ` in ${dtypes.join(' or ')}` : ''
  const what = isWhole ? `no graphs${wanted} for ${devices.join(' or ')}` : `no ${missing}.onnx`
  return refuse(
    `${folder.nameOf('')} is an encoder-decoder (${name}), but it has ${what}. It has ${names.join(', ')}.`,
    'Export it with `optimum-cli export onnx --task text2text-generation-with-past`.',
  )
}

/** Returns the error for a folder without a tokenizer in the form that pages read. */
function noTokenizer(folder: Folder): Error {
  const others = ['source.spm', 'spiece.model', 'sentencepiece.bpe.model', 'vocab.json']
  const own = others.filter((name) => folder.sizeOf(name) !== undefined).join(' and ')
  return refuse(
    `${folder.nameOf('')} has no ${TOKENIZER}${own && `, but ${own}, which pages cannot read`}.`,
    'Copy it from an export of the same model that has one, such as one for transformers.js, or save ' +
      'the tokenizer with `AutoTokenizer.from_pretrained(model, use_fast=True).save_pretrained(folder)`.',
  )
}
