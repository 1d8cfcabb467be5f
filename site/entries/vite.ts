/** @module inorigin/vite */
export * from '../../src/vite.ts'
