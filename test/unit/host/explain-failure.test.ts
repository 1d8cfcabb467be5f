import { expect, test } from 'vitest'
import type { Entry } from '../../../src/catalog/schema.ts'
import { InoriginError } from '../../../src/error.ts'
import { createFailureExplainer } from '../../../src/host/library/explain-failure.ts'
import type { Entries } from '../../../src/host/library/entries.ts'
import type { Database } from '../../../src/store/database.ts'
import { HASH, model } from '../catalog/entries.ts'

const entry = model({
  tag: '@a/big',
  implementations: [
    {
      id: 'wasm',
      engine: 'onnx',
      device: 'wasm',
      resources: [{ type: 'onnx', url: 'm', name: 'm.onnx', bytes: 1e9, sha256: HASH }],
    },
  ],
})

/** An explainer, and what it read to explain. */
function open() {
  const reads: string[] = []
  const read = async <T>(what: string, value: T): Promise<T> => {
    reads.push(what)
    return value
  }
  const explain = createFailureExplainer({
    database: { name: 'test', use: () => read('database', undefined) } as unknown as Database,
    entries: { all: () => read<Entry[]>('entries', [entry]) } as Entries,
    device: () =>
      read('device', {
        webgpu: null,
        wasm: { simd: true, threads: false, jspi: true },
        memory: null,
        cores: 2,
      }),
    preference: 'auto',
  })
  const [implementation] = entry.implementations
  return { reads, explain: (error: unknown) => explain(error, entry, implementation as never) }
}

test('a canceled request is reported as it is, and reads nothing', async () => {
  const { explain, reads } = open()
  const error = new InoriginError('aborted', 'The request was canceled.')
  expect(await explain(error)).toBe(error)
  const reason = new DOMException('The answer was canceled.', 'AbortError')
  expect(await explain(reason)).toBe(reason)
  expect(reads).toEqual([])
})

test('other failures are compared with what the catalog offers', async () => {
  const { explain, reads } = open()
  const error = new InoriginError('unavailable', 'No memory.', { code: 'out_of_memory' })
  expect(await explain(error)).toMatchObject({ code: 'out_of_memory' })
  expect(reads).toEqual(['entries', 'device'])
})
