import { expect, test } from 'vitest'
import { deviceFailure, unsupportedFromError } from '../../../src/engine/failure.ts'

const WASM =
  'no available backend found. ERR: [wasm] RangeError: WebAssembly.Memory(): could not allocate memory'

const UNABLE = 'operator_unsupported'

test.each<[thrown: unknown, code: string | undefined]>([
  [new Error('ERROR_CODE: 6, ERROR_MESSAGE: std::bad_alloc'), 'out_of_memory'],
  [new RangeError('Array buffer allocation failed'), 'out_of_memory'],
  [new RangeError('Invalid typed array length: 9999999999'), 'out_of_memory'],
  [new Error(WASM), 'out_of_memory'],
  [new RangeError('createBuffer failed, size (8) is too large'), 'out_of_memory'],
  [new Error('The Device was lost before mapping was resolved.'), 'device_lost'],
  [new WebAssembly.RuntimeError('null function'), 'runtime_crashed'],
  // An exception of C++.
  [8_123_456, 'runtime_crashed'],
  [new TypeError('V(...) is not a function'), 'runtime_crashed'],
  [new Error('ERROR_CODE: 9, ERROR_MESSAGE: Could not find an implementation for A(1)'), UNABLE],
  [
    new Error('Status Message: the prologue is implemented only on the CUDA and WebGPU EPs.'),
    UNABLE,
  ],
  [new Error('failed to call OrtRun(). ERROR_CODE: 2'), undefined],
  [new Error("input 'x' is missing in 'feeds'."), undefined],
])('the failure of a device has a code: %s', (thrown, code) => {
  expect(deviceFailure(thrown)?.code).toBe(code)
})

test('an operator that the runtime lacks is named, with what to do', () => {
  const error = deviceFailure(
    new Error(
      'ERROR_CODE: 2, ERROR_MESSAGE: Non-zero. Status Message: It is implemented only on X.',
    ),
  )
  expect(unsupportedFromError(error)).toBe('It is implemented only on X')
  expect(error?.message).toMatch(/device: It is implemented only on X\. Use another precision/)
  expect(unsupportedFromError(new Error('no'))).toBeNull()
})
