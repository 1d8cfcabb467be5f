/**
 * The script of the worker that hosts the models. It exports nothing. The Vite plugin and
 * `inorigin init` put it into `inorigin/worker.js`, and `serve()` starts it there.
 *
 * @module inorigin/worker
 */
export * from '../../src/host/worker.ts'
