/** @module inorigin/language-model */
export * from '../../src/adapters/language-model/index.ts'
