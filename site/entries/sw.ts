/** @module inorigin/sw */
export * from '../../sw/index.ts'
