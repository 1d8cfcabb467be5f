/** @module inorigin/testing */
export * from '../../src/adapters/testing/server.ts'
