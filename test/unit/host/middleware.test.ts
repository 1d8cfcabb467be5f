/** What happens around each request of the host, in its order. */
import { expect, test } from 'vitest'
import {
  compose,
  createAuthorization,
  withAuthorization,
  withTrace,
  withWatchers,
} from '../../../src/host/requests/middleware.ts'
import type { HostService } from '../../../src/types/index.ts'

const { signal } = new AbortController()
const stranger = { key: 'wrong', signal }
const owner = { key: 'right', signal }

function composed() {
  const seen: string[] = []
  const answer = (name: string) => async () => void seen.push(name)
  const names = ['models', 'countTokens', 'resource', 'progress', 'openDirectPort'] as const
  const service = Object.fromEntries(names.map((name) => [name, answer(name)]))
  const watched: AbortSignal[] = []
  const whole = compose(service as unknown as HostService, [
    withWatchers((each) => watched.push(each)),
    withTrace({ report: ({ type }) => seen.push(type) }),
    withAuthorization(createAuthorization(['right'])),
  ])
  return { whole, seen, watched }
}

test('a request with a wrong key is traced, and does not reach the method', async () => {
  const { whole, seen } = composed()
  const request = { model: '@test/a', messages: [] } as unknown as Parameters<
    HostService['countTokens']
  >[0]
  await expect(whole.countTokens(request, stranger)).rejects.toMatchObject({
    kind: 'authentication',
  })
  await expect(whole.models(stranger)).rejects.toThrow('Invalid API key.')
  expect(seen).toEqual(['request', 'failure'])
  await whole.countTokens(request, owner)
  await whole.models(owner)
  expect(seen.slice(2)).toEqual(['request', 'countTokens', 'response', 'models'])
})

test('files need no key, and only requests that watch tell their signal', async () => {
  const { whole, seen, watched } = composed()
  await whole.resource('a', stranger)
  await whole.models(owner)
  expect(watched).toEqual([])
  const watching = { key: null, signal: new AbortController().signal }
  await whole.progress(watching)
  await whole.openDirectPort('@test/a', undefined, {
    ...watching,
    onMessage: () => undefined,
  } as never)
  expect(watched).toEqual([watching.signal, watching.signal])
  expect(seen).toEqual(['resource', 'models', 'progress', 'openDirectPort'])
})
