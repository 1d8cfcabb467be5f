/** @module inorigin/store */
export * from '../../src/adapters/store.ts'
