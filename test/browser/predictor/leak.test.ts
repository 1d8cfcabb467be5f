/** Nothing piles up: neither tensors, nor wasm memory, nor GPU buffers. */
import { afterEach, expect, test, vi } from 'vitest'
import { openDigits } from './digits.ts'
import { plain, strokes } from './draw.ts'

const { signal } = new AbortController()
const [drawing] = strokes(plain)
const inputs = { image: drawing?.canvas }

/** Inputs and outputs of one run. */
const TENSORS = 5

afterEach(() => {
  vi.restoreAllMocks()
})

test('two hundred runs on WASM', async () => {
  const { Tensor } = await import('onnxruntime-web/wasm')
  const digits = await openDigits('wasm')
  for (let run = 0; run < 10; run++) await digits.predict(inputs, signal)
  const dispose = vi.spyOn(Tensor.prototype, 'dispose')
  const grow = vi.spyOn(WebAssembly.Memory.prototype, 'grow')
  for (let run = 0; run < 200; run++) await digits.predict(inputs, signal)
  expect(dispose).toHaveBeenCalledTimes(200 * TENSORS)
  expect(grow).not.toHaveBeenCalled()
  await digits.close()
})

test('twelve runs on WebGPU', { tags: ['slow'] }, async () => {
  const digits = await openDigits('webgpu')
  for (let run = 0; run < 3; run++) await digits.predict(inputs, signal)
  const created = vi.spyOn(GPUDevice.prototype, 'createBuffer')
  const destroyed = vi.spyOn(GPUBuffer.prototype, 'destroy')
  for (let run = 0; run < 12; run++) await digits.predict(inputs, signal)
  expect(created.mock.calls.length - destroyed.mock.calls.length).toBeLessThan(6)
  await digits.close()
})
