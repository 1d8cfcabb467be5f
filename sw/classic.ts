/** The finished script, `inorigin/sw.js`: a service worker that does this one job. */
import { attach } from './index.ts'

declare const self: ServiceWorkerGlobalScope

attach()

// A first install has nothing to wait for. An update waits until a page says that nothing streams:
// Firefox and WebKit cut open streams when a new script takes over.
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()))
