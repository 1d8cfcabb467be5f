/** Pages of the playground: errors of loads, comparisons, and the benchmark's self-test. */
import { expect, test } from 'vitest'
import { describeSelfTest } from '../../../demo/bench/environment.ts'
import { type Comparison, toJson, toMarkdown } from '../../../demo/compare/result.ts'
import { troubleWith } from '../../../demo/trouble.ts'
import type { Reason } from '../../../src/index.ts'

test('a known trouble is told in short, another one with its message', () => {
  const down = Object.assign(new Error('long words'), { code: 'hub_unreachable' })
  expect(troubleWith('the model', down)).toBe(
    'The hub of the model cannot be reached now. Try again later.',
  )
  expect(troubleWith('the model', new Error('Why not.'))).toBe(
    'The model could not be loaded. Why not.',
  )
})

const COMPARISON: Comparison = {
  history: [{ question: 'Zero?', answer: 'An earlier answer.' }],
  prompt: 'One | two?\nThree?',
  created: '2026-11-23T00:00:00.000Z',
  together: true,
  columns: [
    {
      settings: { model: '@a/b', temperature: 0 },
      text: 'First answer.',
      finish: 'stop',
      completionTokens: 12,
      firstText: 40.2,
      end: 1_420,
      tokensPerSecond: 34.21,
    },
    { settings: { model: '@c/d' }, text: 'Half', error: 'Stopped' },
  ],
}

test('a comparison as Markdown has a table of settings and figures, and the answers', () => {
  expect(toMarkdown(COMPARISON)).toBe(`# Comparison

2026-11-23T00:00:00.000Z. The requests began together.

> Zero?

An earlier answer.

> One | two?
> Three?

|  | 1. @a/b | 2. @c/d |
| --- | --- | --- |
| Settings | temperature 0 | defaults |
| Tokens | 12 |  |
| First token after | 40 ms |  |
| Tokens/s | 34.2 |  |
| Ended after | 1.42 s |  |
| Finish | stop |  |

## 1. @a/b

First answer.

## 2. @c/d

Half

Error: Stopped
`)
})

test('a comparison as JSON has all of it', () => {
  expect(JSON.parse(toJson(COMPARISON))).toEqual(COMPARISON)
})

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
