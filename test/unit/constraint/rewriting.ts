/** Tries which JSON texts a rewritten schema allows, with the engine. */
import { expect } from 'vitest'
import type { JsonSchema } from '../../../src/constraint/constraint.ts'
import { rewriteSchema } from '../../../src/constraint/schema/rewrite.ts'
import { isObject } from '../../../src/constraint/schema/plain.ts'
import { SchemaEngine } from '../../schemas/engine.ts'
import { createByteVocabulary } from '../../schemas/vocabulary.ts'

const engine = new SchemaEngine(createByteVocabulary())

export interface Expected {
  right?: readonly string[]
  wrong?: readonly string[]
  /** Keywords that are loosened. None by default. */
  loosened?: readonly string[]
  /** Keywords that are ignored. None by default. */
  ignored?: readonly string[]
}

/** Expects the schema to allow the right texts, and to refuse the wrong ones. */
export async function expectTexts(schema: JsonSchema, expected: Expected): Promise<void> {
  const { right = [], wrong = [], loosened = [], ignored = [] } = expected
  const rewritten = rewriteSchema(schema, '')
  const keywordsOf = (list: readonly { keyword: string }[]): string[] =>
    [...new Set(list.map(({ keyword }) => keyword))].sort()
  const grammar = await engine.compile(isObject(rewritten.schema) ? rewritten.schema : {})
  const taken = [...right, ...wrong].filter((text) => grammar.takes(text))
  grammar.close()
  expect(taken).toEqual(right)
  expect(keywordsOf(rewritten.loosened)).toEqual([...loosened].sort())
  expect(keywordsOf(rewritten.ignored)).toEqual([...ignored].sort())
}
