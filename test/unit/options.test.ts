/** Options with wrong names or types are refused by name, and similar names are suggested. */
import { expect, test } from 'vitest'
import { createTestServer, type TestServerOptions } from '../../src/extras/testing/server.ts'
import type { ServeOptions } from '../../src/index.ts'
import type { LoadOptions } from '../../src/server.ts'
import { assertKnownOptions, type OptionNames, toOwnTag } from '../../src/validate-arguments.ts'

const names = { apiKeys: true, isolate: true, signal: true } as unknown as OptionNames<ServeOptions>

const refusal = (options: unknown): unknown => {
  try {
    assertKnownOptions(options as ServeOptions, names)
  } catch (error) {
    return error
  }
}

test.each([
  ['apikeys', 'Unknown option "apikeys". Did you mean apiKeys?'],
  ['isolated', 'Unknown option "isolated". Did you mean isolate?'],
  ['serviceWorker', 'Unknown option "serviceWorker". Known options: apiKeys, isolate, signal.'],
  ['toString', 'Unknown option "toString". Known options: apiKeys, isolate, signal.'],
])('%s is refused', (option, message) => {
  const refused = { kind: 'invalid_request', code: 'invalid_value', param: option, message }
  expect(refusal({ signal: undefined, [option]: true })).toMatchObject(refused)
})

test.each([null, 5, 'isolate'])('%j is no options', (options) => {
  expect(refusal(options)).toMatchObject({ kind: 'invalid_request', param: 'options' })
})

test('known options are accepted', () => {
  expect(refusal({})).toBeUndefined()
  expect(refusal({ isolate: true, apiKeys: undefined })).toBeUndefined()
})

test('the test server refuses what the server of a page refuses', async () => {
  const tag = '@me/chat'
  const server = createTestServer({ models: [{ tag, answers: [] }] })
  const mistyped = { onprogress: () => {} } as LoadOptions
  const what = 'Unknown option "onprogress". Did you mean onProgress?'
  await expect(server.models.load(tag, mistyped)).rejects.toThrow(what)
  await expect(server.predict(tag, {}, mistyped)).rejects.toThrow(what)
  expect(() => server.trace({ timeout: 5 } as object)).toThrow('Known options: signal.')
  expect(() => server.models.progress({ signals: 5 } as object)).toThrow('Did you mean signal?')
  expect(() => createTestServer({ model: [] } as TestServerOptions)).toThrow('Did you mean models?')
})

test.each([
  [['model.onnx'], '@me/model'],
  [['SmolLM2-1.7B'], '@me/smollm2-1.7b'],
  [['readme.md', 'SmolLM2.Q4_1.gguf'], '@me/smollm2.q4_1'],
  [['big-00001-of-00002.gguf', 'big-00002-of-00002.gguf'], '@me/big'],
  [['Folder/onnx/model.onnx', 'Folder/config.json'], '@me/folder'],
  [['Mein Modell (neu).onnx'], '@me/mein-modell-neu'],
  [['…'], '@me/model'],
  [[], '@me/model'],
])('files named %j become %j', (paths, tag) => {
  expect(toOwnTag(paths.map((path) => ({ path, file: new File([], path) })))).toBe(tag)
})
