import { expect, test } from 'vitest'
import { describeSelfTest } from '../../../demo/bench/environment.ts'
import type { Reason } from '../../../src/index.ts'

const reason = (device: Reason['device'], chosen: boolean, why = ''): Reason => ({
  id: device,
  device,
  chosen,
  why,
  bytes: 1,
  milliseconds: null,
})

test('the benchmark says that the GPU passed its self-test, or why it was not used', () => {
  const onGpu = { reasons: [reason('webgpu', true), reason('wasm', false)] }
  expect(describeSelfTest(onGpu, ['config.json', 'model.onnx'])).toBe('passed')
  expect(describeSelfTest(onGpu, ['params_shard_0.bin'])).toBe('not run: the model is no ONNX')
  const why = 'the GPU here computes wrong numbers'
  const onCpu = { reasons: [reason('webgpu', false, why), reason('wasm', true)] }
  expect(describeSelfTest(onCpu, ['model.onnx'])).toBe(`not run: ${why}`)
  expect(describeSelfTest({ reasons: [reason('wasm', true)] }, [])).toMatch(/no implementation/)
})
