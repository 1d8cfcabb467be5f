/** @module inorigin/react */
export * from '../../src/extras/react.ts'
