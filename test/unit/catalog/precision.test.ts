import { expect, test } from 'vitest'
import { expandHubEntry } from '../../../src/catalog/hub/resolve-hub.ts'
import { listKeyParts, withPrecision } from '../../../src/catalog/precision.ts'
import type { Implementation } from '../../../src/catalog/schema.ts'
import { catalog, model, predictor, validate } from './entries.ts'

const implementation = (id: string, changes: Partial<Implementation> = {}): Implementation => ({
  ...model().implementations[0]!,
  id,
  ...changes,
})
const listed = (...implementations: Implementation[]) => model({ implementations })
const precisionsOf = ({ implementations }: { implementations: readonly Implementation[] }) =>
  implementations.map(({ id, precision }) => `${id} ${precision ?? 'unsaid'}`)

test('The precision of the app holds where the catalog says nothing', () => {
  const entry = listed(
    implementation('one'),
    implementation('two', { precision: 'fast' }),
    implementation('three', { precision: 'exact' }),
    implementation('four', { engine: 'mlc', device: 'webgpu' }),
  )
  const exact = precisionsOf(withPrecision(entry, 'exact'))
  expect(exact).toEqual(['one exact', 'two fast', 'three exact', 'four unsaid'])
  expect(withPrecision(entry, 'fast')).toBe(entry)
  expect(withPrecision(predictor(), 'exact')).toEqual(predictor())
})

test('The implementations of an exact model of a hub are ordered by their fidelity', () => {
  const ids = ['q8-wasm', 'q4-wasm', 'own', 'fp32-wasm']
  const written = {
    tag: '@acme/tiny',
    huggingface: 'acme/tiny',
    implementations: ids.map((id) => implementation(id)),
  }
  const listedIds = (changes: object, precision: 'fast' | 'exact') => {
    const [entry] = validate(catalog({ ...written, ...changes } as never)).entries
    if (!entry) throw new Error('no entry')
    return withPrecision(entry, precision).implementations.map(({ id }) => id)
  }
  const byFidelity = ['fp32-wasm', 'q4-wasm', 'q8-wasm', 'own']
  expect(listedIds({}, 'fast')).toEqual(ids)
  expect(listedIds({}, 'exact')).toEqual(byFidelity)
  expect(listedIds({ precision: 'exact' }, 'fast')).toEqual(byFidelity)
  expect(listedIds({ precision: 'fast' }, 'exact')).toEqual(ids)
  expect(listedIds({ dtypes: ['q8', 'q4', 'fp32'] }, 'exact')).toEqual(ids)
})

test('The look-up of a hub knows the precision of its entry, and else that of the app', () => {
  const short = { tag: '@acme/tiny', huggingface: 'acme/tiny' } as const
  const lookedUp = (changes: object) =>
    withPrecision(expandHubEntry({ ...short, ...changes }, undefined), 'exact')
  expect(lookedUp({})).toMatchObject({ hub: { precision: 'exact' } })
  expect(lookedUp({ precision: 'fast' })).toMatchObject({ hub: { precision: 'fast' } })
})

test('What is known of the same files is kept apart by precision', () => {
  const one = implementation('one')
  const keys = [
    one,
    { ...one, precision: 'fast' as const },
    { ...one, precision: 'exact' as const },
  ]
  const [unsaid, fast, exact] = keys.map((each) => listKeyParts(each).join(' '))
  expect(fast).toBe(unsaid)
  expect(exact).not.toBe(fast)
})
