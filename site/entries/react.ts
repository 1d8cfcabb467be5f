/** @module inorigin/react */
export * from '../../src/adapters/react.ts'
