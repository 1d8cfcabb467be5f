/** Images of prompts: their sizes and tokens by family, positions, orientation, encoder and places in the text. */
import { describe, expect, test } from 'vitest'
import type { GpuComparison } from '../../../src/device/gpu-verdict.ts'
import { FIRST_IMAGE_ROW } from '../../../src/engine/images.ts'
import { Positions } from '../../../src/engine/onnx/decoder/positions.ts'
import { createCheckedEncoder, type OpenEncoder } from '../../../src/engine/onnx/vision/encoder.ts'
import { readVisionFamily } from '../../../src/engine/onnx/vision/families.ts'
import type {
  EncoderInput,
  EncoderInputs,
  Extent,
  Picture,
  VisionFamily,
} from '../../../src/engine/onnx/vision/family.ts'
import { createIdentities, isLyingJpeg } from '../../../src/engine/onnx/vision/image-store.ts'
import { InoriginError } from '../../../src/error.ts'
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

const gridOf = ([width, height]: Extent, factor: number) => ({
  rows: height / factor,
  columns: width / factor,
})

test.each([
  ['qwen2_vl', {}],
  ['qwen2_5_vl', QWEN25],
])('%s has the sizes of the Python class', async (type, settings) => {
  const { arrange } = await open(type, settings)
  for (const { size, qwen2 } of ROWS)
    expect({ size, ...arrange(size, 'high').grid }).toEqual({ size, ...gridOf(qwen2, 28) })
})

test.each([
  ['qwen3_vl', QWEN35, {}],
  ['qwen3_vl', {}, { image_processor: QWEN35 }],
  ['qwen3_5', QWEN35, {}],
])('%s has the sizes, and few rows in low detail: %j, %j', async (type, settings, processor) => {
  const { arrange } = await open(type, settings, processor)
  for (const { size, qwen35, qwen35Low } of ROWS) {
    expect({ size, ...arrange(size, 'high').grid }).toEqual({ size, ...gridOf(qwen35, 32) })
    const low = arrange(size, 'low')
    expect({ size, ...low.grid }).toEqual({ size, ...gridOf(qwen35Low, 32) })
    expect(low.pieces).toEqual([countOf(qwen35Low, 32)])
  }
})

test('an image of extreme proportions is rejected if the family cannot scale it', async () => {
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

test('settings that no image can have are rejected', async () => {
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

describe('positions on three axes', () => {
  /** Two images: one of 2 x 3 rows, and one of 4 x 1 rows. */
  const IMAGES = [
    { firstRow: FIRST_IMAGE_ROW, grid: { rows: 2, columns: 3 } },
    { firstRow: FIRST_IMAGE_ROW + 6, grid: { rows: 4, columns: 1 } },
  ]
  const locate = (row: number) => (row < FIRST_IMAGE_ROW + 6 ? IMAGES[0] : IMAGES[1])

  const rows = (first: number, count: number): number[] =>
    Array.from({ length: count }, (_, index) => FIRST_IMAGE_ROW + first + index)
  const text = (count: number): number[] => Array<number>(count).fill(7)

  const axesOf = (positions: Positions, tokens: readonly number[], past: number): number[][] => {
    const axes = [0, 1, 2].map(() => new BigInt64Array(tokens.length))
    positions.write(tokens, past, axes)
    return axes.map((axis) => Array.from(axis, Number))
  }

  const WHOLE = [...text(2), ...rows(0, 6), ...text(2), ...rows(6, 4), ...text(1)]
  const AXES = [
    [0, 1, 2, 2, 2, 2, 2, 2, 5, 6, 7, 7, 7, 7, 11],
    [0, 1, 2, 2, 2, 3, 3, 3, 5, 6, 7, 8, 9, 10, 11],
    [0, 1, 2, 3, 4, 2, 3, 4, 5, 6, 7, 7, 7, 7, 11],
  ]

  test('continue after the longer side of an image', () => {
    expect(axesOf(new Positions(locate, 0), WHOLE, 0)).toEqual(AXES)
  })

  test.each([1, 2, 3, 5])('do not depend on chunks, here of %i tokens', (size) => {
    const positions = new Positions(locate, 0)
    const axes: number[][] = [[], [], []]
    for (let past = 0; past < WHOLE.length; past += size) {
      const part = axesOf(positions, WHOLE.slice(past, past + size), past)
      part.forEach((values, axis) => axes[axis]?.push(...values))
    }
    expect(axes).toEqual(AXES)
  })

  test('of a truncated sequence ignore later images', () => {
    const positions = new Positions(locate, 0)
    axesOf(positions, WHOLE, 0)
    // Text in the place of the second image.
    expect(axesOf(positions, text(3), 10)).toEqual([0, 1, 2].map(() => [7, 8, 9]))
    expect(axesOf(positions, text(8), 1)[0]).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    expect(axesOf(positions, text(1), 9)).toEqual([0, 1, 2].map(() => [9]))
  })

  test('of a fork depend on the images of its tokens only', () => {
    const positions = new Positions(locate, 0)
    axesOf(positions, WHOLE, 0)
    const fork = positions.fork(9)
    expect(axesOf(fork, text(2), 9)).toEqual([0, 1, 2].map(() => [6, 7]))
    // The other sequence goes on as before.
    expect(axesOf(positions, text(1), 15)).toEqual([0, 1, 2].map(() => [12]))
  })

  test('are relative to the first', () => {
    const moved = axesOf(new Positions(locate, 2), WHOLE, 0)
    expect(moved).toEqual(AXES.map((axis) => axis.map((position) => position + 2)))
  })

  test('of rows without a grid are like those of tokens', () => {
    const positions = new Positions(() => undefined, 0)
    expect(axesOf(positions, [...text(1), ...rows(0, 2), ...text(1)], 0)).toEqual(
      [0, 1, 2].map(() => [0, 1, 2, 3]),
    )
  })
})

describe('an image encoder on a GPU', () => {
  const OUTPUT = Float32Array.of(1, -2, 3, -4)

  function encoder(rows: Float32Array | Error): OpenEncoder & { runs: number; released: number } {
    const opened = {
      runs: 0,
      released: 0,
      async run() {
        opened.runs += 1
        if (rows instanceof Error) throw rows
        return rows
      },
      async release() {
        opened.released += 1
      },
    }
    return opened
  }

  function check(ours: Float32Array, theirs: Float32Array | Error) {
    const [onGpu, onCpu] = [encoder(ours), encoder(theirs)]
    const comparisons: GpuComparison[] = []
    const run = createCheckedEncoder({
      onGpu,
      openOnCpu: async () => onCpu,
      onComparison: (comparison) => comparisons.push(comparison),
    })
    return { onGpu, onCpu, comparisons, encode: () => run({}, 4) }
  }

  test('stays there if its rows agree with the CPU', async () => {
    const near = OUTPUT.map((number) => number * 1.01)
    const { onGpu, onCpu, comparisons, encode } = check(near, OUTPUT)
    expect(await encode()).toEqual(near)
    expect(await encode()).toEqual(near)
    expect(comparisons).toEqual([
      { agrees: true, why: 'the rows of its image encoder differ from those of the CPU by 1.0 %' },
    ])
    expect([onGpu.runs, onCpu.runs, onGpu.released, onCpu.released]).toEqual([2, 1, 0, 1])
  })

  test.each([
    ['far', OUTPUT.map((number) => number * 1.5)],
    ['NaN', OUTPUT.with(2, NaN)],
    ['too few', OUTPUT.slice(0, 3)],
  ])('is replaced by the CPU if its rows are %s', async (_, wrong) => {
    const { onGpu, onCpu, comparisons, encode } = check(wrong, OUTPUT)
    expect(await encode()).toEqual(OUTPUT)
    expect(await encode()).toEqual(OUTPUT)
    expect(comparisons).toMatchObject([{ agrees: false }])
    expect([onGpu.runs, onCpu.runs, onGpu.released, onCpu.released]).toEqual([1, 2, 1, 0])
  })

  test('stays there if the CPU cannot run it, and is compared at the next load', async () => {
    const failure = new InoriginError('unavailable', 'It has no such kernel.')
    const { onGpu, onCpu, comparisons, encode } = check(OUTPUT, failure)
    await encode()
    await encode()
    expect(comparisons).toMatchObject([{ agrees: true, isTransient: true }])
    expect([onGpu.runs, onCpu.runs, onCpu.released]).toEqual([2, 1, 1])
  })

  test('is compared again after a lost device', async () => {
    const lost = new InoriginError('unavailable', 'The GPU was lost.', { code: 'device_lost' })
    const { onCpu, comparisons, encode } = check(OUTPUT, lost)
    await expect(encode()).rejects.toBe(lost)
    await expect(encode()).rejects.toBe(lost)
    expect(onCpu.runs).toBe(2)
    expect(comparisons).toEqual([])
  })
})

describe('the orientation of a photo', () => {
  const big = (value: number, bytes: number): number[] =>
    Array.from({ length: bytes }, (_, at) => (value >>> (8 * (bytes - 1 - at))) & 0xff)

  const little = (value: number, bytes: number): number[] => big(value, bytes).toReversed()

  const segment = (marker: number, content: readonly number[]): number[] => [
    0xff,
    marker,
    ...big(content.length + 2, 2),
    ...content,
  ]

  /** An Exif segment with that orientation, after another entry. */
  function exif(orientation: number, write: typeof big): number[] {
    const order = write === little ? [0x49, 0x49] : [0x4d, 0x4d]
    const entry = (tag: number, value: number): number[] => [
      ...write(tag, 2),
      ...write(3, 2),
      ...write(1, 4),
      ...write(value, 2),
      ...write(0, 2),
    ]
    const directory = [...write(2, 2), ...entry(0x010f, 7), ...entry(0x0112, orientation)]
    const tiff = [...order, ...write(42, 2), ...write(8, 4), ...directory, ...write(0, 4)]
    return segment(0xe1, [...Buffer.from('Exif\0\0'), ...tiff])
  }

  const jpeg = (...segments: number[][]): Uint8Array =>
    Uint8Array.from([0xff, 0xd8, ...segments.flat(), 0xff, 0xda, 0, 2])

  const APP0 = segment(0xe0, [...Buffer.from('JFIF\0')])

  test.each([1, 2, 3, 4, 5, 6, 7, 8])('%i is read from its header', (orientation) => {
    for (const write of [big, little]) {
      expect(isLyingJpeg(jpeg(APP0, exif(orientation, write)))).toBe(orientation >= 5)
    }
  })

  test('is upright in files without it, cut files and other formats', () => {
    expect(isLyingJpeg(jpeg(APP0))).toBe(false)
    expect(isLyingJpeg(jpeg(segment(0xe1, [...Buffer.from('http://ns.adobe.com/xap/')])))).toBe(
      false,
    )
    // The orientation ends at byte 44.
    const whole = jpeg(exif(6, big))
    for (let length = 0; length < 44; length++) {
      expect(isLyingJpeg(whole.subarray(0, length))).toBe(false)
    }
    expect(isLyingJpeg(Uint8Array.from([0x89, 0x50, 0x4e, 0x47]))).toBe(false)
  })

  test('is not read after the scan', () => {
    expect(isLyingJpeg(Uint8Array.from([...jpeg(APP0), ...exif(6, big)]))).toBe(false)
  })
})
