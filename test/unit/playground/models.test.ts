/** Names of models that a visitor adds. */
import { expect, test } from 'vitest'
import { toOwnTag } from '../../../demo/models-page/import.ts'
import { toRepository, toTag } from '../../../demo/own-catalog.ts'
import { troubleWith } from '../../../demo/trouble.ts'

test.each([
  ['onnx-community/Qwen3-0.6B-ONNX', 'onnx-community/Qwen3-0.6B-ONNX'],
  [' https://huggingface.co/me/One/tree/main ', 'me/One'],
  ['https://example.com/me/one', undefined],
  ['http://huggingface.co/me/one', undefined],
  ['me', undefined],
  ['me/../one', undefined],
  ['<b>/x', undefined],
])('%j means the repository %j', (text, repository) => {
  expect(toRepository(text)).toBe(repository)
})

test('a tag is in lower case', () => {
  expect(toTag('Me/One.2-B')).toBe('@me/one.2-b')
})

test.each([
  ['model.onnx', '@me/model'],
  ['SmolLM2-1.7B', '@me/smollm2-1.7b'],
  ['Mein Modell (neu).onnx', '@me/mein-modell-neu'],
  ['…', '@me/model'],
])('files named %j become %j', (name, tag) => {
  expect(toOwnTag(name)).toBe(tag)
})

test('a known trouble is told in short, another one with its message', () => {
  const down = Object.assign(new Error('long words'), { code: 'hub_unreachable' })
  expect(troubleWith('the model', down)).toBe(
    'The hub that has the model cannot be reached now. Try again later.',
  )
  expect(troubleWith('the model', new Error('Why not.'))).toBe(
    'The model could not be loaded. Why not.',
  )
})
