/** The models of `vision.py` and `vision_twins.py`, which see images. */
import type { ImageInput } from '../../src/engine/images.ts'
import type { ImageDetail } from '../../src/engine/images.ts'
import lfm2 from './vision-lfm2/expected.json'
import qwen2 from './vision-qwen2/expected.json'
import qwen25 from './vision-qwen25/expected.json'
import qwen3 from './vision-qwen3/expected.json'
import qwen35 from './vision-qwen35/expected.json'
import idefics3 from './vision/expected.json'

const VISION_TEXTS = [
  'config.json',
  'preprocessor_config.json',
  'tokenizer.json',
  'tokenizer_config.json',
]

const VISION_GRAPHS = [
  'onnx/embed_tokens.onnx',
  'onnx/vision_encoder.onnx',
  'onnx/decoder_model_merged.onnx',
]

interface VisionCase {
  image: string
  size: [number, number]
  detail: ImageDetail
  /** Rows of the encoder. */
  rows: number[][]
  /** Tokens before and after the rows, and the greedy answer. */
  before: number[]
  after: number[]
  greedy: number[]
}

/** A model by the name of its folder. */
export interface VisionModel {
  folder: string
  cases: readonly VisionCase[]
  /** Small files besides the graphs. */
  texts: readonly string[]
}

const modelOf = (folder: string, cases: unknown, more: readonly string[] = []): VisionModel => ({
  folder,
  cases: cases as readonly VisionCase[],
  texts: [...VISION_TEXTS, ...more],
})

const IDEFICS3 = modelOf('vision', idefics3, ['processor_config.json'])

export const VISION_MODELS = [
  IDEFICS3,
  modelOf('vision-lfm2', lfm2),
  modelOf('vision-qwen2', qwen2),
  modelOf('vision-qwen25', qwen25),
  modelOf('vision-qwen3', qwen3, ['processor_config.json']),
  modelOf('vision-qwen35', qwen35),
]

export const visionTexts = ({ folder, texts }: VisionModel): Promise<Map<string, Blob>> =>
  visionFiles(folder, texts)

export const visionGraphs = (
  { folder }: VisionModel,
  names: readonly string[] = VISION_GRAPHS,
): Promise<Map<string, Blob>> => visionFiles(folder, names)

async function visionFiles(folder: string, names: readonly string[]): Promise<Map<string, Blob>> {
  return new Map(
    await Promise.all(names.map(async (name) => [name, await visionFile(folder, name)] as const)),
  )
}

async function visionFile(folder: string, name: string): Promise<Blob> {
  const response = await fetch(`/test/models/${folder}/${name}`)
  if (!response.ok) throw new Error(`${name}: ${response.status}`)
  return response.blob()
}

/** The image of a case, as a request describes it. All models see the same images. */
export async function visionImage(
  { image, size, detail }: VisionCase,
  partition = '',
): Promise<ImageInput> {
  const bytes = new Uint8Array(await (await visionFile('vision', `${image}.png`)).arrayBuffer())
  const place = `messages[0].content[0]`
  return { bytes, mediaType: 'image/png', size, detail, digest: image, partition, place }
}
