/** Which verdicts on a GPU the next host finds. */
import { expect, test } from 'vitest'
import type { GpuVerdict } from '../../../src/device/gpu-verdict.ts'
import { probeDevice } from '../../../src/device/capabilities.ts'
import { createGpuVerdicts } from '../../../src/host/choice/gpu-verdict.ts'
import { putDeviceFact } from '../../../src/store/device-facts.ts'
import { openDatabase } from '../../../src/store/database.ts'

test.each<[string, GpuVerdict, boolean]>([
  ['right without a feature', { features: [] }, true],
  ['wrong', { features: null }, true],
  ['late', { features: null, late: true }, false],
  ['late with a feature', { features: [], late: true }, false],
])('%s', async (_, found, isStored) => {
  const database = openDatabase(`test:${crypto.randomUUID()}`)
  const host = createGpuVerdicts(database, probeDevice)
  host.record(found)
  expect(await host.verdict()).toEqual(found)
  const next = () => createGpuVerdicts(database, probeDevice).verdict()
  if (isStored) await expect.poll(next).toEqual(found)
  else {
    // One that is kept comes after it: what would have been written is there by then.
    const other = { features: ['other'] }
    host.record(other)
    await expect.poll(next).toEqual(other)
    host.record(found)
    await host.verdict()
    // A write to the same store ends after those that were begun before it.
    await putDeviceFact(database, 'another subject', {})
    expect(await next()).toEqual(other)
  }
})
