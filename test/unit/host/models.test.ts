import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createModels } from '../../../src/host/models.ts'
import type { Implementation } from '../../../src/catalog/schema.ts'
import type { Transfer } from '../../../src/host/hosted.ts'
import { predictor } from '../catalog/entries.ts'

beforeEach(() => {
  vi.stubGlobal('Worker', class {
    postMessage(): void {}
    terminate(): void {}
  })
})

afterEach(() => {
  vi.unstubAllGlobals()
})

/** Models whose downloads never end, and how to tell how far the last one is. */
function open() {
  let tell = (_transfer: Transfer): void => undefined
  const models = createModels({
    assets: 'https://app.test/inorigin/',
    ensure: (_resources, { onProgress }) => {
      tell = onProgress
      return new Promise(() => undefined)
    },
    onVerdict: () => undefined,
    explain: async (error) => error,
  })
  const leaving = new AbortController()
  const told: number[] = []
  const watch = async () => {
    for await (const { loadedBytes } of models.progress(leaving.signal)) told.push(loadedBytes)
  }
  const watching = watch()
  const here = (loadedBytes: number) => {
    tell({ loadedBytes, totalBytes: 10, bytesPerSecond: 1 })
    return new Promise((resolve) => setTimeout(resolve, 5))
  }
  return { models, told, here, stop: () => (leaving.abort(), watching) }
}

const entry = predictor()
const implementation = entry.implementations[0] as Implementation

test('the way of a model that is only measured is told from when somebody asks for it', async () => {
  const { models, told, here, stop } = open()
  models.acquire(entry, implementation, undefined, true)
  await here(1)
  expect(told).toEqual([])
  models.acquire(entry, implementation)
  await here(2)
  expect(told).toEqual([2])
  await stop()
})

test('and goes on being told while it is measured too', async () => {
  const { models, told, here, stop } = open()
  models.acquire(entry, implementation)
  models.acquire(entry, implementation, undefined, true)
  await here(1)
  expect(told).toEqual([1])
  await stop()
})
