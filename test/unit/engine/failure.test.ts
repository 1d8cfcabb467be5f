import { describe, expect, test } from 'vitest'
import { deviceFailure } from '../../../src/engine/failure.ts'

describe('what a failure of the device is', () => {
  test.each<[string, unknown, string | undefined]>([
    [
      'a heap without room',
      new Error('ERROR_CODE: 6, ERROR_MESSAGE: std::bad_alloc'),
      'out_of_memory',
    ],
    ['no array so large', new RangeError('Array buffer allocation failed'), 'out_of_memory'],
    [
      'no length so large',
      new RangeError('Invalid typed array length: 9999999999'),
      'out_of_memory',
    ],
    [
      'no wasm memory',
      new Error(
        'no available backend found. ERR: [wasm] RangeError: WebAssembly.Memory(): could not allocate memory',
      ),
      'out_of_memory',
    ],
    [
      'no buffer so large',
      new RangeError('createBuffer failed, size (8) is too large'),
      'out_of_memory',
    ],
    ['a lost device', new Error('The Device was lost before mapping was resolved.'), 'device_lost'],
    ['a trap', new WebAssembly.RuntimeError('null function'), 'runtime_crashed'],
    ['an exception from C++', 8_123_456, 'runtime_crashed'],
    ['glue that finds nonsense', new TypeError('V(...) is not a function'), 'runtime_crashed'],
    ['a model that is wrong', new Error('failed to call OrtRun(). ERROR_CODE: 2'), undefined],
    ['an input that is missing', new Error("input 'x' is missing in 'feeds'."), undefined],
  ])('%s', (_, thrown, code) => {
    expect(deviceFailure(thrown)?.code).toBe(code)
  })
})
