import { expect, test } from 'vitest'
import { type Comparison, toJson, toMarkdown } from '../../../demo/compare/result.ts'

const COMPARISON: Comparison = {
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
