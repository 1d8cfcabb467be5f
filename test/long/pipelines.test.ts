/** Three models of a pipeline on WebGPU. A GPU made of software takes minutes for a line of text. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { TextLine } from '../../demo/pipelines/read-text.ts'
import {
  EXPECTED,
  GPU_IS_LEFT,
  openPipelines,
  type Pipelines,
  readResult,
  toClose,
} from '../support/pipelines.ts'

const EXAMPLE = join(import.meta.dirname, '../../demo/pipelines/example.png')

let pipelines: Pipelines

beforeAll(async () => {
  pipelines = await openPipelines()
}, 600_000)

afterAll(() => pipelines?.close())

test('text is read on WebGPU as by onnxruntime-node, or the GPU is left by name', async (context) => {
  const page = await pipelines.open(context, 'ocr.html?device=webgpu')
  const buffer = await cutExample(page)
  await page.setInputFiles('#file', { name: 'cut.png', mimeType: 'image/png', buffer })
  const lines = await readResult<TextLine[]>(page)
  if (typeof lines === 'string') expect(lines).toMatch(GPU_IS_LEFT)
  else expect(lines).toEqual(toClose(EXPECTED.regionLines))
})

/** Resolves with a PNG file of the region whose lines are expected. */
async function cutExample(page: Page): Promise<Buffer> {
  const bytes = await page.evaluate(
    async ([base64, { left, top, width, height }]) => {
      const image = await (await fetch(`data:image/png;base64,${base64}`)).blob()
      const canvas = new OffscreenCanvas(width, height)
      const bitmap = await createImageBitmap(image, left, top, width, height)
      canvas.getContext('2d')?.drawImage(bitmap, 0, 0)
      return [...new Uint8Array(await (await canvas.convertToBlob()).arrayBuffer())]
    },
    [readFileSync(EXAMPLE, 'base64'), EXPECTED.region] as const,
  )
  return Buffer.from(bytes)
}
