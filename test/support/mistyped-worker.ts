/** A service worker that mistypes an option, and tells what it was told. */
import { attach, type AttachOptions } from '../../sw/index.ts'

declare const self: ServiceWorkerGlobalScope

let message = 'accepted'
try {
  attach({ isolated: true } as AttachOptions)
} catch (error) {
  message = (error as Error).message
}
self.addEventListener('message', ({ ports }) => ports[0]?.postMessage(message))
