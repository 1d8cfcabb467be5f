/** Which tab the service worker sends a request to. */
import { expect, test } from 'vitest'
import { createHostFinder } from '../../sw/api.ts'

/** Creates a finder whose tabs are listed although they may be closed. They answer nothing. */
function openTabs(...ids: string[]) {
  const sent: string[] = []
  const clients = ids.map((id) => ({
    id,
    visibilityState: 'visible',
    postMessage: ({ type }: { type: string }) => sent.push(`${id} ${type}`),
  }))
  const worker = {
    registration: { scope: 'http://localhost/' },
    clients: {
      get: async (id: string) => clients.find((client) => client.id === id),
      matchAll: async () => clients,
    },
  } as unknown as ServiceWorkerGlobalScope
  return { finder: createHostFinder(worker), sent }
}

const port = () => new MessageChannel().port2

test('the known host is asked at once', async () => {
  const { finder, sent } = openTabs('one', 'two')
  finder.setHost('one')
  await finder.connect(port(), 0)
  expect(sent).toEqual(['one inorigin:request'])
})

test('a host that has gone is not asked, although the browser still lists it', async () => {
  const { finder, sent } = openTabs('one', 'two')
  finder.setHost('one')
  finder.forgetHost()
  const connected = finder.connect(port(), 0)
  await expect.poll(() => sent).toEqual(['one inorigin:who-hosts', 'two inorigin:who-hosts'])
  finder.setHost('two')
  await connected
  expect(sent.at(-1)).toBe('two inorigin:request')
})
