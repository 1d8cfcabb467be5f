/** Models that see images, compared with Pillow and numpy (`test/models/vision.py`). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Engine, Prompt, StartInfo } from '../../../src/engine/engine.ts'
import type { PromptImage } from '../../../src/engine/images.ts'
import { openOnnx } from '../../../src/engine/onnx/index.ts'
import { loadRuntime, type Runtime, type Session } from '../../../src/engine/onnx/runtime.ts'
import { createEncoder, type RunEncoder } from '../../../src/engine/onnx/vision/encoder.ts'
import { readVisionFamily } from '../../../src/engine/onnx/vision/families.ts'
import { createImageStore, type ImageStore } from '../../../src/engine/onnx/vision/image-store.ts'
import { runtimeFolder } from '../../models/tiny.ts'
import { VISION_MODELS, visionGraphs, visionImage, visionTexts } from '../../models/vision.ts'
import { decoded, GREEDY, never } from './run-engine.ts'

const numbersOf = ({ firstRow, rowCount }: PromptImage): number[] =>
  Array.from({ length: rowCount }, (_, index) => firstRow + index)

describe.each(VISION_MODELS)('rows of images of $folder', (model) => {
  let runtime: Runtime
  let session: Session
  let store: ImageStore
  let runs = 0

  beforeAll(async () => {
    runtime = await loadRuntime({ device: 'wasm', folder: runtimeFolder() })
    const files = await visionGraphs(model, ['onnx/vision_encoder.onnx'])
    session = await runtime.createSession(files.get('onnx/vision_encoder.onnx') ?? new Blob())
    const family = await readVisionFamily(await visionTexts(model))
    if (!family) throw new Error('the family is unknown')
    store = createImageStore(family)
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

  test.each(model.cases)(
    'of $image in $detail detail are those of Pillow and numpy',
    async (each) => {
      const image = store.describe(await visionImage(each))
      expect(image.rowCount).toBe(each.rows.length)
      const release = store.retain([image])
      const rows = await store.load(numbersOf(image))
      release()
      const differences = rows.flatMap((row, index) =>
        [...row].map((number, at) => Math.abs(number - (each.rows[index]?.[at] ?? NaN))),
      )
      expect(differences).toHaveLength(each.rows.length * 32)
      expect(Math.max(...differences)).toBeLessThan(2e-4)
    },
  )

  test('are computed once for an image, and again for another partition', async () => {
    const [first] = model.cases
    if (!first) throw new Error('a case is needed')
    const load = async (partition: string): Promise<number> => {
      const image = store.describe(await visionImage(first, partition))
      const release = store.retain([image])
      const before = runs
      await store.load(numbersOf(image))
      release()
      return runs - before
    }
    expect(await load('one')).toBe(1)
    expect(await load('one')).toBe(0)
    expect(await load('two')).toBe(1)
  })

  test('of an image that no request retains are refused', async () => {
    const [first] = model.cases
    if (!first) throw new Error('a case is needed')
    const image = store.describe(await visionImage(first, 'nobody'))
    await expect(store.load(numbersOf(image))).rejects.toMatchObject({ kind: 'internal' })
  })
})

describe.each(VISION_MODELS)('an engine of $folder', (model) => {
  let engine: Engine
  beforeAll(async () => {
    engine = await openOnnx({
      device: 'wasm',
      maxInputTokens: 512,
      runtime: runtimeFolder(),
      texts: await visionTexts(model),
    })
    await engine.load(await visionGraphs(model), never)
  })
  afterAll(() => engine.close())

  const describeCase = async (
    at: number,
    partition?: string,
  ): Promise<{ prompt: Prompt; text: string; start: number; end: number }> => {
    const each = model.cases[at]
    const reader = engine.images
    if (!each || !reader) throw new Error('a case and a reader of images are needed')
    const image = reader.describe(await visionImage(each, partition))
    const tokens = [...each.before, ...numbersOf(image), ...each.after]
    const start = each.before.length
    const end = start + image.rowCount
    // Models with states are found again only at a boundary.
    const prompt = { tokens, boundaries: [end], opening: '', images: [image] }
    return { prompt, text: decoded(each.greedy), start, end }
  }

  const answer = async (prompt: Prompt): Promise<{ text: string; cachedTokens: number }> => {
    let text = ''
    let cachedTokens = 0
    const onStart = (info: StartInfo) => (cachedTokens = info.cachedTokens)
    const options = { ...GREEDY, maxTokens: 10, onStart }
    for await (const piece of engine.generate(prompt, options)) text += piece.text
    return { text, cachedTokens }
  }

  test.each(model.cases.map((each, at) => ({ ...each, at })))(
    'answers about $image in $detail detail as the reference does',
    async ({ at }) => {
      const { prompt, text } = await describeCase(at)
      expect((await answer(prompt)).text).toBe(text)
    },
  )

  test('answers about several images at once as about each alone', async () => {
    const questions = await Promise.all(model.cases.map((_, at) => describeCase(at, 'at once')))
    const answers = await Promise.all(questions.map(({ prompt }) => answer(prompt)))
    expect(answers.map(({ text }) => text)).toEqual(questions.map(({ text }) => text))
  })

  test('finds an image again in the prefix cache, but not another of the same size', async () => {
    const { prompt, start, end } = await describeCase(0)
    const first = await answer(prompt)
    const again = await describeCase(0)
    expect(again.prompt.tokens).toEqual(prompt.tokens)
    const second = await answer(again.prompt)
    expect(second.text).toBe(first.text)
    expect(second.cachedTokens).toBeGreaterThanOrEqual(end)
    // The image `other` has the size of the first.
    const other = await describeCase(model.cases.findIndex(({ image }) => image === 'other'))
    const swapped = [
      ...prompt.tokens.slice(0, start),
      ...other.prompt.tokens.slice(start, end),
      ...prompt.tokens.slice(end),
    ]
    const different = await answer({ ...other.prompt, tokens: swapped })
    expect(different.cachedTokens).toBeLessThanOrEqual(start)
    expect(different.text).not.toBe(first.text)
  })

  test('answers a second question about an image as without the prefix cache', async () => {
    const ask = async (partition: string): ReturnType<typeof answer> => {
      const { prompt, end } = await describeCase(0, partition)
      const question = prompt.tokens.slice(end).toReversed()
      const tokens = [...prompt.tokens.slice(0, end), ...question]
      return answer({ ...prompt, tokens })
    }
    const fresh = await ask('fresh')
    const { prompt, start, end } = await describeCase(0)
    expect(fresh.cachedTokens).toBeLessThanOrEqual(start)
    await answer(prompt)
    expect(await ask('')).toEqual({ text: fresh.text, cachedTokens: end })
  })

  test('refuses a file that is not whole', async () => {
    const [first] = model.cases
    const reader = engine.images
    if (!first || !reader) throw new Error('a case and a reader of images are needed')
    const input = await visionImage(first, 'broken')
    const broken = reader.describe({ ...input, bytes: input.bytes.slice(0, 60) })
    await expect(reader.assertReadable(broken)).rejects.toMatchObject({
      code: 'invalid_image',
      param: 'messages[0].content[0]',
    })
  })
})

test.each(VISION_MODELS)('$folder answers text without its image encoder', async (model) => {
  const engine = await openOnnx({
    device: 'wasm',
    maxInputTokens: 512,
    runtime: runtimeFolder(),
    texts: await visionTexts(model),
    takesImages: false,
  })
  expect(engine.images).toBeNull()
  const graphs = ['onnx/embed_tokens.onnx', 'onnx/decoder_model_merged.onnx']
  await engine.load(await visionGraphs(model, graphs), never)
  const prompt: Prompt = { tokens: [5, 6, 7], boundaries: [], opening: '' }
  let text = ''
  for await (const piece of engine.generate(prompt, { ...GREEDY, maxTokens: 4 })) text += piece.text
  expect(text).not.toBe('')
  await engine.close()
})
