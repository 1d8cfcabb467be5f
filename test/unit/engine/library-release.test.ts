import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { findForeignRelease, WEBLLM_RELEASE } from '../../../src/engine/webllm/library-release.ts'

/** A library that only imports a function. */
function libraryImporting(name: string): Blob {
  const text = (word: string) => [word.length, ...new TextEncoder().encode(word)]
  const entry = [...text('env'), ...text(name), 0, 0]
  const imports = [1, ...entry]
  const header = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]
  return new Blob([
    Uint8Array.from([...header, 1, 4, 1, 0x60, 0, 0, 2, imports.length, ...imports]),
  ])
}

test.each([
  ['TVMWasmPackedCFunc', /m\.wasm was compiled for WebLLM 0\.2\.79 or earlier: it imports TVMWasm/],
  ['_ZN3tvm7runtime9threading10NumThreadsEv', /compiled for WebLLM 0\.2\.80 to 0\.2\.84/],
])('a library that imports %s names the release that it needs', async (name, message) => {
  const error = await findForeignRelease('m.wasm', libraryImporting(name), 'cause')
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
