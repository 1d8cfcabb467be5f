/** @module inorigin/language-model */
export * from '../../src/extras/language-model/index.ts'
