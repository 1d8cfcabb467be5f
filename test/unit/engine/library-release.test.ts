import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { findForeignRelease, WEBLLM_RELEASE } from '../../../src/engine/webllm/library-release.ts'

/** A library that only imports these functions. */
function libraryImporting(...names: readonly string[]): Blob {
  const text = (word: string) => [word.length, ...new TextEncoder().encode(word)]
  const imports = [names.length, ...names.flatMap((name) => [...text('env'), ...text(name), 0, 0])]
  const header = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]
  const length = [(imports.length & 0x7f) | 0x80, imports.length >> 7]
  return new Blob([Uint8Array.from([...header, 1, 4, 1, 0x60, 0, 0, 2, ...length, ...imports])])
}

/** What all libraries import that were compiled for releases until 0.2.84. */
const THREADS = [
  '_ZN3tvm7runtime9threading10NumThreadsEv',
  '_ZN3tvm7runtime9threading15ResetThreadPoolEv',
  'emscripten_notify_memory_growth',
]

const OLDEST =
  /^m\.wasm was compiled for WebLLM 0\.2\.79 or earlier: it imports TVMWasmPackedCFunc,/
const MIDDLE = /^m\.wasm was compiled for WebLLM 0\.2\.80 to 0\.2\.84: it imports _ZN3tvm7runtime/

/** What MLC's own libraries import from `env`, by their folder and when they were compiled. */
test.each([
  ['v0_2_30 to v0_2_48', ['TVMWasmPackedCFunc', 'TVMWasmPackedCFuncFinalizer'], OLDEST],
  [
    'v0_2_80, August and November 2025',
    ['TVMFFIWasmFunctionDeleter', 'TVMFFIWasmSafeCall'],
    MIDDLE,
  ],
  [
    'v0_2_80, September 2025',
    ['TVMFFIEnvModRegisterSystemLibSymbol', 'TVMFFIWasmFunctionDeleter', 'TVMFFIWasmSafeCall'],
    MIDDLE,
  ],
  [
    'v0_2_80, October 2025',
    [
      'TVMFFIEnvCheckSignals',
      'TVMFFIEnvGetStream',
      'TVMFFIEnvSetStream',
      'TVMFFIWasmFunctionDeleter',
      'TVMFFIWasmSafeCall',
    ],
    MIDDLE,
  ],
])('a library of %s names the release that it needs', async (_, names, message) => {
  const library = libraryImporting(...names, ...THREADS)
  const error = await findForeignRelease('m.wasm', library, 'cause')
  expect(error).toMatchObject({ kind: 'unavailable', code: 'model_unusable', cause: 'cause' })
  expect(error?.message).toMatch(message)
  expect(error?.message).toContain(`WebLLM ${WEBLLM_RELEASE} of this app`)
})

test('imports of this release, and files that are no library, say nothing', async () => {
  expect(await findForeignRelease('m', libraryImporting('TVMFFIWasmSafeCall'), 0)).toBeNull()
  expect(await findForeignRelease('m', new Blob(['no library']), 0)).toBeNull()
})

test('the release is the one in package.json', () => {
  const file = readFileSync(join(import.meta.dirname, '../../../package.json'), 'utf8')
  expect(file).toContain(`"@mlc-ai/web-llm": "${WEBLLM_RELEASE}"`)
})
