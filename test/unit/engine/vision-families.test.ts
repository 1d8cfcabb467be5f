/** What images become in prompts, by the settings of real models. */
import { expect, test } from 'vitest'
import { FIRST_IMAGE_ROW } from '../../../src/engine/images.ts'
import { readVisionFamily } from '../../../src/engine/onnx/vision/families.ts'
import type {
  EncoderInput,
  EncoderInputs,
  Extent,
  Picture,
  VisionFamily,
} from '../../../src/engine/onnx/vision/family.ts'
import { createIdentities } from '../../../src/engine/onnx/vision/image-identities.ts'
import { type Pixels, resample } from '../../../src/values/resample.ts'
import sizes from '../../models/vision-sizes.json'

const json = (value: unknown): Blob => new Blob([JSON.stringify(value)])

async function open(type: string, image: object, processor: object = {}): Promise<VisionFamily> {
  const family = await readVisionFamily(
    new Map([
      ['config.json', json({ model_type: type })],
      ['preprocessor_config.json', json(image)],
      ['processor_config.json', json(processor)],
    ]),
  )
  if (!family) throw new Error(`${type} is not known`)
  return family
}

/** Keys of LFM2.5-VL 450M; their values are the defaults of the class. */
const LFM2 = { tile_size: 512, max_tiles: 10, encoder_patch_size: 16, downsample_factor: 2 }
const QWEN25 = { patch_size: 14, min_pixels: 3_136, max_pixels: 12_845_056 }
const QWEN35 = { patch_size: 16, size: { shortest_edge: 65_536, longest_edge: 16_777_216 } }

interface Row {
  size: Extent
  lfm2: Extent
  lfm2Grid: readonly [columns: number, rows: number] | null
  qwen2: Extent
  qwen35: Extent
  qwen35Low: Extent
}

const ROWS = sizes as unknown as readonly Row[]
const countOf = ([width, height]: Extent, factor: number): number =>
  (width / factor) * (height / factor)

test('lfm2_vl has the tiles and rows of the Python class', async () => {
  const { arrange } = await open('lfm2_vl', LFM2)
  for (const { size, lfm2, lfm2Grid } of ROWS) {
    const whole = countOf(lfm2, 32)
    expect(arrange(size, 'low').runs).toEqual([whole])
    const tiles = lfm2Grid ? Array<number>(lfm2Grid[0] * lfm2Grid[1]).fill(256) : []
    expect({ size, runs: arrange(size, 'high').runs }).toEqual({ size, runs: [...tiles, whole] })
  }
})

test('lfm2_vl writes markers around tiles, row by row', async () => {
  const { arrange } = await open('lfm2_vl', LFM2)
  expect(arrange([1280, 720], 'high').pieces).toEqual([
    '<|image_start|>',
    '<|img_row_1_col_1|>',
    256,
    '<|img_row_1_col_2|>',
    256,
    '<|img_thumbnail|>',
    252,
    '<|image_end|>',
  ])
  expect(arrange([1280, 720], 'low').pieces).toEqual(['<|image_start|>', 252, '<|image_end|>'])
})

test('lfm2_vl reads the settings of tiles from both files', async () => {
  const settings = { use_thumbnail: false, max_tiles: 4, max_pixels_tolerance: 1.5 }
  for (const family of [await open('lfm2_vl', settings), await open('lfm2_vl', {}, settings)]) {
    expect(family.arrange([1000, 1000], 'high').runs).toEqual([256, 256, 256, 256])
    // 1.5 times 262,144 pixels are fewer than those of 640 x 640.
    expect(family.arrange([640, 640], 'high').runs).toHaveLength(4)
  }
  const { arrange } = await open('lfm2_vl', { do_image_splitting: false })
  expect(arrange([8000, 8000], 'high').runs).toHaveLength(1)
})

const placed = ([width, height]: Extent, factor: number) => ({
  rows: height / factor,
  columns: width / factor,
})

test.each([
  ['qwen2_vl', {}],
  ['qwen2_5_vl', QWEN25],
])('%s has the sizes of the Python class', async (type, settings) => {
  const { arrange } = await open(type, settings)
  for (const { size, qwen2 } of ROWS)
    expect({ size, ...arrange(size, 'high').grid }).toEqual({ size, ...placed(qwen2, 28) })
})

test.each([
  ['qwen3_vl', QWEN35, {}],
  ['qwen3_vl', {}, { image_processor: QWEN35 }],
  ['qwen3_5', QWEN35, {}],
])('%s has them, and few rows in low detail: %j, %j', async (type, settings, processor) => {
  const { arrange } = await open(type, settings, processor)
  for (const { size, qwen35, qwen35Low } of ROWS) {
    expect({ size, ...arrange(size, 'high').grid }).toEqual({ size, ...placed(qwen35, 32) })
    const low = arrange(size, 'low')
    expect({ size, ...low.grid }).toEqual({ size, ...placed(qwen35Low, 32) })
    expect(low.pieces).toEqual([countOf(qwen35Low, 32)])
  }
})

test('an image far longer than wide is refused, if the family cannot scale it', async () => {
  const input = (size: Extent) => ({
    bytes: new Uint8Array([0, 0]),
    mediaType: 'image/png',
    size,
    digest: String(size),
    partition: '',
    place: 'messages[2].content[0]',
  })
  const identify = createIdentities(await open('qwen2_vl', {}))
  expect(identify(input([200, 1])).firstRow).toBe(FIRST_IMAGE_ROW)
  expect(() => identify(input([1, 201]))).toThrowError(
    expect.objectContaining({ code: 'invalid_image', param: 'messages[2].content[0]' }),
  )
  const anySize = createIdentities(await open('idefics3', {}))
  expect(anySize(input([1, 9000])).rowCount).toBeGreaterThan(0)
})

test('settings that no image can have are refused', async () => {
  await expect(open('lfm2_vl', { tile_size: 500 })).rejects.toMatchObject({ kind: 'unavailable' })
  await expect(open('lfm2_vl', { max_tiles: 65 })).rejects.toMatchObject({ kind: 'unavailable' })
  await expect(open('qwen2_vl', { min_pixels: 9, max_pixels: 8 })).rejects.toMatchObject({
    kind: 'unavailable',
  })
})

/** Returns a picture of gray bytes, given row by row. */
function toPicture(rows: readonly (readonly number[])[]): Picture {
  const width = (rows[0] as readonly number[]).length
  const rgba = Uint8ClampedArray.from(rows.flat().flatMap((gray) => [gray, gray, gray, 255]))
  const pixels: Pixels = { rgba, width, height: rows.length }
  return { resize: (size, filter) => resample(pixels, ...size, filter), close: () => {} }
}

const numbers = (inputs: EncoderInputs, name: string): number[] =>
  Array.from((inputs[name] as EncoderInput).data, Number)

test('idefics3 pads an image to its tile if the settings say so, and masks what it added', async () => {
  const { arrange, prepare } = await open('idefics3', {
    image_aspect_ratio: 'pad',
    max_image_size: { longest_edge: 4 },
    size: { longest_edge: 4 },
    do_rescale: false,
    do_normalize: false,
  })
  expect(arrange([4000, 2000], 'high')).toEqual(arrange([4, 4], 'low'))
  const wide = [
    [10, 20, 30, 40],
    [50, 60, 70, 80],
  ]
  const landscape = prepare(toPicture(wide), [4, 2], 'high')(0)
  // 45 is the mean of both rows.
  const around = [45, 45, 45, 45]
  const plane = [...around, ...wide.flat(), ...around]
  expect(numbers(landscape, 'pixel_values')).toEqual([...plane, ...plane, ...plane])
  expect(numbers(landscape, 'pixel_attention_mask')).toEqual([
    0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0,
  ])
  const rows = [10, 20, 30, 44]
  const high = prepare(toPicture(rows.map((gray) => [gray, 0])), [2, 4], 'low')(0)
  expect(numbers(high, 'pixel_values').slice(0, 16)).toEqual(
    rows.flatMap((gray) => [13, gray, 0, 13]),
  )
  expect(numbers(high, 'pixel_attention_mask')).toEqual(rows.flatMap(() => [0, 1, 1, 0]))
})
