/** The pages of `demo/pipelines` with real models. `test/long` reads text on WebGPU, too. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Segment } from '../../demo/pipelines/find-speech.ts'
import {
  EXPECTED,
  GPU_IS_LEFT,
  openPipelines,
  type Pipelines,
  readResult,
  toClose,
} from '../support/pipelines.ts'

const OPTIONS = { tags: ['slow'], timeout: 900_000 }

let pipelines: Pipelines

beforeAll(async () => {
  pipelines = await openPipelines()
}, 600_000)

afterAll(() => pipelines?.close())

test('the text of an image is read as by onnxruntime-node', OPTIONS, async (context) => {
  const page = await pipelines.open(context, 'ocr.html?device=wasm')
  await page.click('#example')
  expect(await readResult(page)).toEqual(toClose(EXPECTED.lines))
  expect(await page.locator('#results li').allInnerTexts()).toContain('Thank you for your order')
})

interface Heard {
  probabilities: number[]
  segments: Segment[]
}

const PROBABILITIES = EXPECTED.probabilities.map((each) => expect.closeTo(each, 3))

test('speech is found on WASM as by onnxruntime-node', OPTIONS, async (context) => {
  const page = await pipelines.open(context, 'voice.html?device=wasm')
  await page.click('#example')
  expect(await readResult<Heard>(page)).toEqual({
    probabilities: PROBABILITIES,
    // 0.3 s of silence, two words, 0.6 s of silence, three words and silence.
    segments: [
      { from: expect.closeTo(0.35, 1), to: expect.closeTo(1.2, 1) },
      { from: expect.closeTo(1.76, 1), to: expect.closeTo(2.9, 1) },
    ],
  })
})

test('on WebGPU speech is found rightly, or the GPU is left by name', OPTIONS, async (context) => {
  const page = await pipelines.open(context, 'voice.html?device=webgpu')
  await page.click('#example')
  const result = await readResult<Heard>(page)
  if (typeof result === 'string') expect(result).toMatch(GPU_IS_LEFT)
  else expect(result.probabilities).toEqual(PROBABILITIES)
})

test('where the app leaves the choice, speech is found rightly', OPTIONS, async (context) => {
  const page = await pipelines.open(context, 'voice.html')
  await page.click('#example')
  expect(await readResult<Heard>(page)).toMatchObject({ probabilities: PROBABILITIES })
})
