/** The model of `vision.py`, which sees images. */
import type { ImageInput } from '../../src/engine/images.ts'
import type { ImageDetail } from '../../src/engine/images.ts'
import expected from './vision/expected.json'

export const VISION_TEXTS = [
  'config.json',
  'preprocessor_config.json',
  'processor_config.json',
  'tokenizer.json',
  'tokenizer_config.json',
]

export const VISION_GRAPHS = [
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

export const VISION_CASES = expected as unknown as readonly VisionCase[]

export async function visionFiles(names: readonly string[]): Promise<Map<string, Blob>> {
  return new Map(
    await Promise.all(names.map(async (name) => [name, await visionFile(name)] as const)),
  )
}

async function visionFile(name: string): Promise<Blob> {
  const response = await fetch(`/test/models/vision/${name}`)
  if (!response.ok) throw new Error(`${name}: ${response.status}`)
  return response.blob()
}

/** The image of a case, as a request describes it. */
export async function visionImage(
  { image, size, detail }: VisionCase,
  partition = '',
): Promise<ImageInput> {
  const bytes = new Uint8Array(await (await visionFile(`${image}.png`)).arrayBuffer())
  const place = `messages[0].content[0]`
  return { bytes, mediaType: 'image/png', size, detail, digest: image, partition, place }
}
