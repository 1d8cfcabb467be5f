/** The app's own service worker, which answers the default route of `useChat`. */
import { createAgentUIStreamResponse } from 'ai'
import { attach } from '../../../sw/index.ts'
import { createAgent } from './agent.ts'

declare const self: ServiceWorkerGlobalScope

attach({
  routes: {
    '/api/chat': async (request, server) => {
      const { messages } = (await request.json()) as { messages: unknown[] }
      return createAgentUIStreamResponse({
        agent: createAgent(server),
        uiMessages: messages,
        abortSignal: request.signal,
      })
    },
  },
})

self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()))
