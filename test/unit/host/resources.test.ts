import { expect, test, vi } from 'vitest'
import { createResources } from '../../../src/host/resources.ts'
import { ensure } from '../../../src/store/ensure.ts'
import { HASH, model } from '../catalog/entries.ts'

vi.mock('../../../src/store/ensure.ts', () => ({ ensure: vi.fn<typeof ensure>() }))

test('what only an earlier prediction knows is stored for its tag', async () => {
  const entry = model({ tag: '@me/old' })
  const [resource] = entry.implementations[0]?.resources ?? []
  if (!resource) throw new Error('The entry has no file.')
  vi.mocked(ensure).mockResolvedValue(new Map([[resource.name, new Blob(['0123456789'])]]))
  const resources = createResources({
    database: {} as never, onDownload: () => undefined,
    entries: { all: async () => [] } as never,
    predictions: { resource: async () => ({ resource, tag: entry.tag }) } as never,
  })
  expect(await resources.info(HASH)).toEqual({ sha256: HASH, name: resource.name, bytes: 10 })
  const { signal } = new AbortController()
  expect((await resources.body(HASH, signal)).blob.size).toBe(10)
  expect(vi.mocked(ensure).mock.calls[0]?.slice(1)).toMatchObject([[resource], { signal, tag: '@me/old' }])
})
