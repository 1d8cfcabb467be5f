/**
 * The complete service worker script. It exports nothing. The Vite plugin and `inorigin init` put it
 * into `sw.js`, and `serve()` registers it there.
 *
 * @module inorigin/sw.js
 */
export * from '../../sw/classic.ts'
