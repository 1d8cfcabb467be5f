/** @module inorigin/vite */
export * from '../../src/extras/vite/plugin.ts'
