import { expect, test } from 'vitest'
import { findEntry, getOwner, toModel, toPredictor } from '../../../src/catalog/find-entry.ts'
import { catalog, model, predictor, thrownBy } from './entries.ts'

test('finds an entry by its tag', () => {
  const all = catalog(model(), predictor())
  expect(findEntry(all, '@acme/digits', 'tag')).toBe(all.entries[1])
})

test('names the tags that look most like an unknown one', () => {
  const tags = ['@acme/zebra', '@acme/guide', '@other/thing', '@acme/guild', '@b/c', '@d/e', '@f/g']
  const all = catalog(...tags.map((tag) => model({ tag })))
  const error = thrownBy(() => findEntry(all, '@acme/gude', 'model'))
  expect(error).toMatchObject({ kind: 'not_found', code: 'model_not_found', param: 'model' })
  expect(error.message).toContain('Unknown model "@acme/gude". Available: @acme/guide, @acme/guild')
  expect(error.message).toMatch(/ and 2 more\.$/)
})

test('says so when there is nothing', () => {
  const error = thrownBy(() => findEntry(catalog(), 'x'.repeat(1e6), 'model'))
  expect(error.message).toContain('catalog is empty')
})

test('shows a model as it is listed', () => {
  expect(toModel(model({ capabilities: { tools: true } }))).toEqual({
    tag: '@acme/tiny',
    name: 'Tiny',
    created: '2026-01-02T03:04:05Z',
    maxInputTokens: 2048,
    maxOutputTokens: 1024,
    capabilities: { tools: true },
  })
  expect(toModel(model()).capabilities).toEqual({})
})

test('shows a predictor with its defaults', () => {
  const { signature } = predictor()
  expect(toPredictor(predictor())).toEqual({
    tag: '@acme/digits',
    owner: { username: 'acme', created: '2026-01-02T03:04:05Z' },
    name: 'Tiny',
    description: '',
    card: '',
    status: 'active',
    access: 'public',
    signature,
  })
})

test('shows what a predictor says of itself', () => {
  const said = {
    owner: { username: 'someone', created: '2020-01-01T00:00:00Z' },
    description: 'Reads digits.',
    card: '# Digits',
    status: 'archived',
    access: 'unlisted',
  } as const
  expect(toPredictor(predictor(said))).toMatchObject(said)
})

test('shows that a state may be left out', () => {
  const entry = predictor({ states: [{ input: 'image', output: 'digit' }] })
  expect(toPredictor(entry).signature.inputs).toMatchObject([{ name: 'image', optional: true }])
  expect(toPredictor(predictor()).signature.inputs[0]).not.toHaveProperty('optional')
})

test('takes the owner out of a tag', () => {
  expect(getOwner('@acme/tiny')).toBe('acme')
})
