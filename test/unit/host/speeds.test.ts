import { afterEach, expect, test, vi } from 'vitest'
import { createSpeeds } from '../../../src/host/speeds.ts'
import type { Capabilities } from '../../../src/device/capabilities.ts'
import type { Database } from '../../../src/store/open.ts'
import { predictor } from '../catalog/entries.ts'

afterEach(() => {
  vi.unstubAllGlobals()
})

const device: Capabilities = {
  webgpu: null, wasm: { simd: true, threads: false, jspi: true }, memory: null, cores: 4,
}

test('devices by the thousand, named by whoever asks, are not all kept in memory', async () => {
  vi.stubGlobal('navigator', { userAgent: 'Browser/1' })
  const read: string[] = []
  const connection = { get: async (_store: string, subject: string) => void read.push(subject) }
  const database = { name: 'test', use: (work) => work(connection as never) } as Database
  const speeds = createSpeeds(database)
  const ask = (name: string) => speeds.of(predictor(), name, device)
  await ask('first')
  await ask('first')
  expect(read).toHaveLength(1)
  for (let count = 0; count < 1000; count += 1) {
    await ask(`device ${count}`)
    await ask('asked for all the time')
  }
  await ask('device 999')
  expect(read).toHaveLength(1002)
  await ask('first')
  expect(read).toHaveLength(1003)
})
