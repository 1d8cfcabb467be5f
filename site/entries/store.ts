/** @module inorigin/store */
export * from '../../src/extras/store.ts'
