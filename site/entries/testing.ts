/** @module inorigin/testing */
export * from '../../src/extras/testing/server.ts'
