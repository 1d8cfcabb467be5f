/**
 * The complete service worker script, `inorigin/sw.js`, for apps without a service worker. A script that
 * imports it has `inorigin.keepApp`.
 */
import { attach } from './index.ts'

export { keepApp } from './keep-app.ts'

declare const self: ServiceWorkerGlobalScope

attach()

// A first install controls the open pages at once. An update waits until a page reports that there
// are no open streams, because Firefox and WebKit cut them when a new script takes over.
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()))
