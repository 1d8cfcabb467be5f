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

// On WebGPU, digits.test.ts counts buffers.
