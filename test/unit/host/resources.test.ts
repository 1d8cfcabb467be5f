import { expect, test, vi } from 'vitest'
import type { ErrorCode } from '../../../src/error-codes.ts'
import { InoriginError } from '../../../src/error.ts'
import { createResources } from '../../../src/host/library/resources.ts'
import type { ensureResources } from '../../../src/store/ensure.ts'
import { HASH, model } from '../catalog/entries.ts'

const ensuring = vi.fn<typeof ensureResources>()

test('what only an earlier prediction knows is stored for its tag', async () => {
  const entry = model({ tag: '@me/old' })
  const [resource] = entry.implementations[0]?.resources ?? []
  if (!resource) throw new Error('The entry has no file.')
  ensuring.mockResolvedValue(new Map([[resource.name, new Blob(['0123456789'])]]))
  const resources = createResources({
    database: {} as never,
    ensure: ensuring,
    onDownload: () => undefined,
    entries: { all: async () => [] } as never,
    predictions: { findResource: async () => ({ resource, tag: entry.tag }) } as never,
  })
  expect(await resources.info(HASH)).toEqual({ sha256: HASH, name: resource.name, bytes: 10 })
  const { signal } = new AbortController()
  expect((await resources.body(HASH, signal)).blob.size).toBe(10)
  expect(ensuring.mock.calls[0]?.slice(1)).toMatchObject([[resource], { signal, tag: '@me/old' }])
})

test('what is gone from its server is gone for good where the catalog has it no more', async () => {
  const entry = model()
  const [resource] = entry.implementations[0]?.resources ?? []
  const { signal } = new AbortController()
  const bodyOf = (all: unknown[], status: number, code: ErrorCode = 'download_failed') => {
    ensuring.mockRejectedValue(
      new InoriginError('unavailable', 'Could not download.', { code, details: { status } }),
    )
    const resources = createResources({
      database: {} as never,
      ensure: ensuring,
      onDownload: () => undefined,
      entries: { all: async () => all } as never,
      predictions: { findResource: async () => ({ resource, tag: entry.tag }) } as never,
    })
    return resources.body(HASH, signal)
  }
  await expect(bodyOf([], 404)).rejects.toMatchObject({ kind: 'not_found', code: 'resource_gone' })
  await expect(bodyOf([], 403)).rejects.toMatchObject({ kind: 'unavailable' })
  await expect(bodyOf([entry], 404)).rejects.toMatchObject({ kind: 'unavailable' })
  // What the user brought, and the browser lost a part of: nobody sends that again.
  await expect(bodyOf([entry], 0, 'import_lost')).rejects.toMatchObject({
    kind: 'not_found',
    code: 'import_lost',
  })
})
