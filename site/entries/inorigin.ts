/** @module inorigin */
export * from '../../src/index.ts'
