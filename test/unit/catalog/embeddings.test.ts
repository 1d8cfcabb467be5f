/** Predictors that say they embed texts. */
import { expect, test } from 'vitest'
import type { PredictorEntry } from '../../../src/catalog/schema.ts'
import { validateCatalog } from '../../../src/catalog/validate.ts'
import { catalog, predictor, thrownBy } from './entries.ts'

const given: NonNullable<PredictorEntry['embeddings']> = {
  input: 'text',
  output: 'vector',
  tokens: 'tokens',
  dimensions: 4,
  maxInputTokens: 512,
}

function check(embeddings: object): ReturnType<typeof validateCatalog> {
  const entry = predictor({
    signature: {
      inputs: [{ name: 'text', type: 'string' }],
      outputs: [
        { name: 'vector', type: 'float32' },
        { name: 'tokens', type: 'int32' },
      ],
    },
    embeddings: { ...given, ...embeddings },
  })
  const options = { source: 'test', base: 'https://acme.example/', embedded: false }
  return validateCatalog(catalog(entry), options)
}

test('they name their parameters', () => {
  expect(check({}).entries[0]).toMatchObject({ embeddings: given })
  expect(() => check({ tokens: undefined })).not.toThrow()
})

test.each([
  [{ input: 'vector' }, 'entries[0].embeddings.input: there is no input vector'],
  [{ output: 'text' }, 'entries[0].embeddings.output: there is no output text'],
  [{ tokens: 'count' }, 'entries[0].embeddings.tokens: there is no output count'],
  [{ dimensions: 0 }, 'entries[0].embeddings.dimensions: '],
  [{ model: 'x' }, 'entries[0].embeddings.model: '],
])('%j is no use', (embeddings, why) => {
  expect(thrownBy(() => check(embeddings)).message).toContain(why)
})
