/** Models that see images: on WASM, compared with Pillow and numpy (`test/models/vision.py`), and their encoders on a GPU. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { GpuComparison } from '../../../src/device/gpu-verdict.ts'
import { requestGpu } from '../../../src/device/gpu.ts'
import type { Engine, Prompt, StartInfo } from '../../../src/engine/engine.ts'
import type { ImageReader, PromptImage } from '../../../src/engine/images.ts'
import { openOnnx } from '../../../src/engine/onnx/index.ts'
import { loadRuntime, type Runtime, type Session } from '../../../src/engine/onnx/runtime.ts'
import { findOperatorError } from '../../../src/engine/onnx/selftest/selftest.ts'
import {
  createEncoder,
  openEncoder,
  type RunEncoder,
} from '../../../src/engine/onnx/vision/encoder.ts'
import { readVisionFamily } from '../../../src/engine/onnx/vision/families.ts'
import type { EncoderInputs } from '../../../src/engine/onnx/vision/family.ts'
import { ImageStore } from '../../../src/engine/onnx/vision/image-store.ts'
import { constraintFolder, runtimeFolder } from '../../models/tiny.ts'
import { VISION_MODELS, visionGraphs, visionImage, visionTexts } from '../../models/vision.ts'
import { onnxFile, type Weight } from '../../support/onnx.ts'
import { createChance } from '../../support/random.ts'
import { decoded, GREEDY, never, promptOf, run, textOf } from './run-engine.ts'

async function openRuntime(device: 'wasm' | 'webgpu'): Promise<Runtime> {
  const folder = runtimeFolder()
  if (device === 'wasm') return loadRuntime({ device, folder })
  const { device: gpu } = await requestGpu({ features: [], optional: [] })
  return loadRuntime({ device, folder, gpu })
}

const numbersOf = ({ firstRow, rowCount }: PromptImage): number[] =>
  Array.from({ length: rowCount }, (_, index) => firstRow + index)

describe.each(VISION_MODELS)('rows of images of $folder', (model) => {
  const [first] = model.cases as [(typeof model.cases)[number]]
  let runtime: Runtime
  let session: Session
  let store: ImageStore
  let runs = 0

  beforeAll(async () => {
    runtime = await openRuntime('wasm')
    const files = await visionGraphs(model, ['onnx/vision_encoder.onnx'])
    session = await runtime.createSession(files.get('onnx/vision_encoder.onnx') as Blob)
    const family = await readVisionFamily(await visionTexts(model))
    if (!family) throw new Error('The family is unknown.')
    store = new ImageStore(family)
    const encoder = createEncoder(runtime, session)
    const counted: RunEncoder = (...given) => {
      runs += 1
      return encoder(...given)
    }
    store.setEncoder(counted)
  })
  afterAll(async () => {
    await session.release()
    runtime.release()
  })

  const loadRows = async (image: PromptImage) => {
    const release = store.retain([image])
    const rows = await store.load(numbersOf(image))
    release()
    return rows
  }

  test.each(model.cases)(
    'of $image in $detail detail are those of Pillow and numpy',
    async (each) => {
      const image = store.describe(await visionImage(each))
      expect(image.rowCount).toBe(each.rows.length)
      const differences = (await loadRows(image)).flatMap((row, index) =>
        [...row].map((number, at) => Math.abs(number - (each.rows[index]?.[at] ?? NaN))),
      )
      expect(differences).toHaveLength(each.rows.length * 32)
      expect(Math.max(...differences)).toBeLessThan(2e-4)
    },
  )

  test('are computed once for an image, and again for another partition', async () => {
    const countRuns = async (partition: string): Promise<number> => {
      const before = runs
      await loadRows(store.describe(await visionImage(first, partition)))
      return runs - before
    }
    expect(await countRuns('one')).toBe(1)
    expect(await countRuns('one')).toBe(0)
    expect(await countRuns('two')).toBe(1)
  })

  test('of an image that no request retains are rejected', async () => {
    const image = store.describe(await visionImage(first, 'nobody'))
    await expect(store.load(numbersOf(image))).rejects.toMatchObject({ kind: 'internal' })
  })
})

describe.each(VISION_MODELS)('an engine of $folder', (model) => {
  const options = {
    device: 'wasm',
    maxInputTokens: 512,
    runtime: runtimeFolder(),
    constraints: constraintFolder(),
  } as const
  const [first] = model.cases as [(typeof model.cases)[number]]
  let engine: Engine
  let images: ImageReader
  beforeAll(async () => {
    engine = await openOnnx({ ...options, texts: await visionTexts(model) })
    await engine.load(await visionGraphs(model), never)
    images = engine.images as ImageReader
  })
  afterAll(() => engine.close())

  const describeCase = async (
    each: (typeof model.cases)[number],
    partition?: string,
  ): Promise<{ prompt: Prompt; text: string; start: number; end: number }> => {
    const image = images.describe(await visionImage(each, partition))
    const tokens = [...each.before, ...numbersOf(image), ...each.after]
    const start = each.before.length
    const end = start + image.rowCount
    // Models with states are found again only at a boundary.
    const prompt = { tokens, boundaries: [end], opening: '', images: [image] }
    return { prompt, text: decoded(each.greedy), start, end }
  }

  const answer = async (prompt: Prompt): Promise<{ text: string; cachedTokens: number }> => {
    let cachedTokens = 0
    const onStart = (info: StartInfo) => (cachedTokens = info.cachedTokens)
    const { pieces } = await run(engine, prompt, { ...GREEDY, maxTokens: 10, onStart })
    return { text: textOf(pieces), cachedTokens }
  }

  test.each(model.cases)(
    'answers about $image in $detail detail as the reference does',
    async (each) => {
      const { prompt, text } = await describeCase(each)
      expect((await answer(prompt)).text).toBe(text)
    },
  )

  test('answers about several images at once as about each alone', async () => {
    const questions = await Promise.all(model.cases.map((each) => describeCase(each, 'at once')))
    const answers = await Promise.all(questions.map(({ prompt }) => answer(prompt)))
    expect(answers.map(({ text }) => text)).toEqual(questions.map(({ text }) => text))
  })

  test('finds an image again in the prefix cache, but not another of the same size', async () => {
    const { prompt, start, end } = await describeCase(first)
    const once = await answer(prompt)
    const again = await describeCase(first)
    expect(again.prompt.tokens).toEqual(prompt.tokens)
    const twice = await answer(again.prompt)
    expect(twice.text).toBe(once.text)
    expect(twice.cachedTokens).toBeGreaterThanOrEqual(end)
    // The image `other` has the size of the first.
    const other = await describeCase(model.cases.find(({ image }) => image === 'other') ?? first)
    const swapped = [
      ...prompt.tokens.slice(0, start),
      ...other.prompt.tokens.slice(start, end),
      ...prompt.tokens.slice(end),
    ]
    const different = await answer({ ...other.prompt, tokens: swapped })
    expect(different.cachedTokens).toBeLessThanOrEqual(start)
    expect(different.text).not.toBe(once.text)
  })

  test('answers a second question about an image as without the prefix cache', async () => {
    const ask = async (partition: string): ReturnType<typeof answer> => {
      const { prompt, end } = await describeCase(first, partition)
      const question = prompt.tokens.slice(end).toReversed()
      return answer({ ...prompt, tokens: [...prompt.tokens.slice(0, end), ...question] })
    }
    const fresh = await ask('fresh')
    const { prompt, start, end } = await describeCase(first)
    expect(fresh.cachedTokens).toBeLessThanOrEqual(start)
    await answer(prompt)
    expect(await ask('')).toEqual({ text: fresh.text, cachedTokens: end })
  })

  test('rejects a file that is cut short', async () => {
    const input = await visionImage(first, 'broken')
    const broken = images.describe({ ...input, bytes: input.bytes.slice(0, 60) })
    await expect(images.assertReadable(broken)).rejects.toMatchObject({
      code: 'invalid_image',
      param: 'messages[0].content[0]',
    })
  })

  test('answers text without its image encoder', async () => {
    const texts = await visionTexts(model)
    const blind = await openOnnx({ ...options, texts, takesImages: false })
    expect(blind.images).toBeNull()
    const graphs = ['onnx/embed_tokens.onnx', 'onnx/decoder_model_merged.onnx']
    await blind.load(await visionGraphs(model, graphs), never)
    const { pieces } = await run(blind, promptOf([5, 6, 7]), { ...GREEDY, maxTokens: 4 })
    expect(textOf(pieces)).not.toBe('')
    await blind.close()
  })
})

// A software GPU compiles shaders for seconds, on a busy machine for many.
const onGpu = { tags: ['slow'], timeout: 300_000 }

for (const device of ['wasm', 'webgpu'] as const) {
  test(
    `the operators of the self-test have the numbers of numpy on ${device}`,
    device === 'webgpu' ? onGpu : {},
    async () => {
      const runtime = await openRuntime(device)
      expect(await findOperatorError(runtime)).toBeLessThan(1e-4)
      runtime.release()
    },
  )
}

describe('an encoder on a GPU', onGpu, () => {
  test('runs on the CPU if the GPU computes it wrongly', async () => {
    const right = await encode('wasm', 3)
    expect(right.comparisons).toEqual([])
    const { rows, comparisons, opened } = await encode('webgpu', 3)
    expect(comparisons).toMatchObject([
      { agrees: false, why: expect.stringContaining('image encoder') },
    ])
    for (const each of rows) expect(findFarthest(each, right.rows[0])).toBeLessThan(1e-4)
    expect(opened).toEqual([false, true])
    const later = await encode('webgpu', 3, comparisons[0])
    expect(later.opened).toEqual([true])
    expect(findFarthest(later.rows[0], right.rows[0])).toBeLessThan(1e-4)
  })

  test('is compared once if the GPU computes it right', async () => {
    const { comparisons, opened } = await encode('webgpu', 4)
    expect(comparisons).toMatchObject([{ agrees: true }])
    expect(opened).toEqual([false, true])
    const later = await encode('webgpu', 4, comparisons[0])
    expect(later).toMatchObject({ comparisons: [], opened: [false] })
  })
})

const SIDE = 32
const [ROWS, WIDTH, CHANNELS] = [4, 32, 16] as const

function floats(name: string, shape: readonly number[], seed: number): Weight {
  const chance = createChance(seed)
  const count = shape.reduce((product, length) => product * length, 1)
  const values = Float32Array.from({ length: count }, () => chance.below(2000) / 20_000 - 0.05)
  return { name, type: 'float32', shape, data: new Uint8Array(values.buffer) }
}

const integers = (name: string, values: readonly bigint[]): Weight => ({
  name,
  type: 'int64',
  shape: [values.length],
  data: new Uint8Array(BigInt64Array.from(values).buffer),
})

/** Returns an encoder with a convolution of that many powers of three channels; see `wrong-conv.ts`. */
function encoderOf(powerCount: number): Blob {
  const inner = SIDE - 2
  const powers = Array.from({ length: powerCount }, (_, power) => `power${power}`)
  const file = onnxFile({
    inputs: [{ name: 'pixel_values', type: 'float32', shape: [1, 1, 3, SIDE, SIDE] }],
    outputs: [{ name: 'image_features', type: 'float32', shape: [1, ROWS, WIDTH] }],
    nodes: [
      { type: 'Reshape', inputs: ['pixel_values', 'tile'], outputs: ['power0'] },
      ...powers.slice(1).map((power, before) => ({
        type: 'Mul',
        inputs: [`power${before}`, 'power0'],
        outputs: [power],
      })),
      { type: 'Concat', inputs: powers, outputs: ['wide'], attributes: { axis: 1 } },
      { type: 'Conv', inputs: ['wide', 'w'], outputs: ['convolved'] },
      { type: 'Reshape', inputs: ['convolved', 'flat'], outputs: ['flattened'] },
      { type: 'MatMul', inputs: ['flattened', 'connect'], outputs: ['joined'] },
      { type: 'Reshape', inputs: ['joined', 'rows'], outputs: ['image_features'] },
    ],
    weights: [
      integers('tile', [1n, 3n, BigInt(SIDE), BigInt(SIDE)]),
      integers('flat', [BigInt(CHANNELS), BigInt(inner * inner)]),
      integers('rows', [1n, BigInt(ROWS), BigInt(WIDTH)]),
      floats('w', [CHANNELS, 3 * powerCount, 3, 3], 1),
      floats('connect', [inner * inner, (ROWS * WIDTH) / CHANNELS], 2),
    ],
  })
  return new Blob([file])
}

const INPUTS: EncoderInputs = {
  pixel_values: {
    type: 'float',
    data: Float32Array.from({ length: 3 * SIDE * SIDE }, (_, at) => ((at * 37) % 256) / 128 - 1),
    dims: [1, 1, 3, SIDE, SIDE],
  },
}

async function encode(device: 'wasm' | 'webgpu', powerCount: number, known?: GpuComparison) {
  const runtime = await openRuntime(device)
  const model = encoderOf(powerCount)
  const comparisons: GpuComparison[] = []
  const opened: boolean[] = []
  const createSession = (onCpu: boolean) => {
    opened.push(onCpu)
    return runtime.createSession(model, { onCpu })
  }
  const encoder = await openEncoder(runtime, { model, externalData: [] }, createSession, {
    device,
    runtime: runtimeFolder(),
    contextWindow: 64,
    firstPosition: 0,
    heads: undefined,
    ...(known && { encoderComparison: known }),
    onEncoderComparison: (comparison) => comparisons.push(comparison),
  })
  const rows = [await encoder(INPUTS, ROWS), await encoder(INPUTS, ROWS)].map((each) => [...each])
  runtime.release()
  return { rows, comparisons, opened }
}

const findFarthest = (ours: readonly number[] = [], theirs: readonly number[] = []): number =>
  Math.max(...theirs.map((their, at) => Math.abs((ours[at] ?? NaN) - their)))
