import { describe, expect, test } from 'vitest'
import {
  catalog,
  changed,
  HASH,
  IMPLEMENTATION,
  model,
  predictor,
  RESOURCE,
  thrownBy,
  validate,
} from './entries.ts'

/** Returns the problems of a document that is refused. */
function problemsOf(document: unknown): readonly string[] {
  const error = thrownBy(() => validate(document))
  expect(error).toMatchObject({ kind: 'invalid_request', code: 'invalid_catalog' })
  return error.details?.['problems'] as string[]
}

test('Every URL becomes absolute, and nothing else changes', () => {
  const found = validate(catalog(model(), predictor()))
  const urls = found.entries.map((entry) => entry.implementations[0]?.resources[0]?.url)
  expect(urls).toEqual(Array(2).fill('https://app.test/models/tiny/m.onnx'))
  expect(found.entries[0]).toMatchObject({ tag: '@acme/tiny', maxInputTokens: 2048 })
  expect(validate(found, { base: 'https://other.test/' })).toEqual(found)
})

describe('A wrong value is refused with its place', () => {
  const tag = 'a tag looks like @owner/name'
  const times = [
    'yesterday',
    '2026-01-01',
    '2026-01-01T00:00:00+02',
    '2026-01-01T00:00:00 +02:00',
    '2026-02-31T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-01-01T25:00:00Z',
  ]
  const names = ['../a', 'a/../b', './a', 'a/.', '/a', 'a//b', 'a\\b', '..', '']
  const urls = [
    'javascript:alert(1)',
    'file:///etc/passwd',
    'data:,x',
    'blob:https://a.t/1',
    'http:',
  ]

  test.each<[string, unknown, string?]>([
    [`${RESOURCE}.sha256`, 'abc', 'a sha256'],
    [`${RESOURCE}.bytes`, -1],
    [`${RESOURCE}.bytes`, '10'],
    [`${RESOURCE}.type`, 'zip'],
    [`${RESOURCE}.colour`, 1],
    [`${RESOURCE}.partBytes`, 1.5],
    ['entries[0].tag', 'tiny', tag],
    ['entries[0].tag', '@Acme/tiny', tag],
    ['entries[0].maxInputTokens', 0],
    // The answer is part of the context.
    ['entries[0].maxOutputTokens', 4096],
    ['entries[1].signature.inputs[0].type', 'x'],
    ['entries[1].type', 'thing'],
    ['entries[0].implementations', []],
    ['version', 2],
    ['entries', {}],
    [`${RESOURCE}.chunks`, [HASH, HASH], 'needs 1 hashes'],
    [`${IMPLEMENTATION}.precision`, 'high'],
    ['entries[1].implementations[0].precision', 'exact', 'applies only to language models'],
    ...times.map((time): [string, string] => ['entries[0].created', time]),
    ...[...names, 'a\n/../../b', 'a\u2028/..'].map((name): [string, string, string] => [
      `${RESOURCE}.name`,
      name,
      'a name is a path',
    ]),
    ...urls.map((url): [string, string, string] => [
      `${RESOURCE}.url`,
      url,
      `"${url}" is not an http or https URL`,
    ]),
  ])('%s = %j', (path, value, why = '') => {
    expect(problemsOf(changed(path, value))[0]).toContain(`${path}: ${why}`)
  })

  test('that of a binding by its name', () => {
    const document = changed('entries[1].implementations[0].bindings', { 'input.1': { tensor: 1 } })
    const place = 'entries[1].implementations[0].bindings["input.1"].tensor: '
    expect(problemsOf(document)[0]).toContain(place)
  })
})

test.each<[string, unknown]>([
  ['entries[0].created', '2026-02-28T23:59:59Z'],
  ['entries[0].created', '2024-02-29T00:00:00.125+05:30'],
  [`${RESOURCE}.name`, 'model.onnx'],
  [`${RESOURCE}.name`, 'onnx/model_q4.onnx_data'],
  [`${RESOURCE}.name`, '.hidden/..file..'],
  [`${RESOURCE}.name`, 'a b/ü#?.bin'],
  [`${RESOURCE}.chunks`, [HASH]],
])('%s may be %j', (path, value) => {
  const [entry] = validate(changed(path, value)).entries
  const [found] = entry?.implementations[0]?.resources ?? []
  expect({ ...entry, ...found }).toMatchObject({ [path.split('.').at(-1) ?? '']: value })
})

const INPUT = { name: 'x', type: 'float32' }
const members = (...values: [name: string, value: number][]) => ({
  enumeration: values.map(([name, value]) => ({ name, value })),
})
const given = (signature: object, bindings?: object) => {
  const entry = predictor({ signature: { inputs: [INPUT], outputs: [], ...signature } as never })
  const implementations = entry.implementations.map((one) => ({
    ...one,
    ...(bindings && { bindings }),
  }))
  return catalog({ ...entry, implementations } as never)
}
const input = (changes: object) => ({ inputs: [{ ...INPUT, ...changes }] })

test.each<[object, string]>([
  [{ inputs: [INPUT, INPUT] }, 'inputs[1].name: "x" is already'],
  [{ outputs: [INPUT, INPUT] }, 'outputs[1].name: "x" is already'],
  [input(members(['a', 1], ['a', 2])), 'inputs[0].enumeration[1].name: '],
  [input({ range: { min: 5, max: 1 } }), 'inputs[0].range: min 5 is above max 1'],
  [input({ range: { max: 1 }, defaultValue: 7 }), 'inputs[0].defaultValue: 7 is out of its range'],
  [
    input({ ...members(['a', 1]), defaultValue: 'b' }),
    'inputs[0].defaultValue: is not a member of',
  ],
])('The signature %j is refused', (signature, problem) => {
  expect(problemsOf(given(signature))[0]).toContain(`entries[0].signature.${problem}`)
})

const TEXT = { tensor: 'ids', text: { tokenizer: 'tokenizer.json', most: 8 } }
const LABELED = { tensor: 'x', steps: [{ step: 'ctc', labels: { file: 'keys.txt' } }] }
test.each<[object, string]>([
  [{ 'z.1': { tensor: 'z' } }, '["z.1"]: there is no parameter z.1'],
  [{ x: TEXT }, '["x"].text.tokenizer: there is no resource tokenizer.json'],
  [{ x: LABELED }, '["x"].steps[0].labels.file: there is no resource keys.txt'],
])('The bindings %j are refused', (bindings, problem) => {
  expect(problemsOf(given({}, bindings))[0]).toContain(`${IMPLEMENTATION}.bindings${problem}`)
})

const BIT = members(['on', 1], ['off', 0])
test.each<[string, object]>([
  [
    'two classes of one name',
    { outputs: [{ ...INPUT, ...members(['crane', 134], ['crane', 517]) }] },
  ],
  ['the name of a member', input({ ...BIT, defaultValue: ['on', 0] })],
  ['a boolean for a number', input({ type: 'bool', ...BIT, defaultValue: true })],
  ['a tensor of members', input({ ...BIT, defaultValue: { data: [1, 0], shape: [2] } })],
])('A signature may have %s', (_, signature) => {
  expect(validate(given({ inputs: [], ...signature })).entries).toHaveLength(1)
})

test('A state of unknown parameters is refused', () => {
  const signature = { inputs: [INPUT], outputs: [] }
  const entry = predictor({ signature, states: [{ input: 'z', output: 'w' }] } as never)
  const problems = problemsOf(catalog(entry))
  expect(problems).toContain('entries[0].states[0].input: there is no input z')
  expect(problems).toContain('entries[0].states[0].output: there is no output w')
})

test.each([null, 'text', 7, []])('%j is no catalog', (document) => {
  expect(problemsOf(document)[0]).toMatch(/^(the document|version|entries): /)
})

test('Only some problems are listed, and the others counted', () => {
  const entries = Array.from({ length: 9 }, (_, index) => ({ ...model(), tag: `bad ${index}` }))
  expect(() => validate({ version: 1, entries })).toThrow(
    /cannot be used:\n(entries\[\d\]\.tag: .*\n){5}\(and 4 more\)$/,
  )
})

test('A model compiled by MLC runs on WebGPU and has a library', () => {
  const implementations = model().implementations.map((one) => ({
    ...one,
    engine: 'mlc' as const,
    device: 'wasm' as const,
  }))
  expect(problemsOf(catalog(model({ implementations })))).toEqual([
    `${IMPLEMENTATION}.device: mlc runs only on webgpu`,
    `${IMPLEMENTATION}.resources: mlc needs the compiled library of the model, of type wasm`,
  ])
  expect(problemsOf(catalog(predictor({ implementations })))[0]).toBe(
    `${IMPLEMENTATION}.engine: mlc runs only language models`,
  )
})

test('Tags, ids of implementations and names of files are unique', () => {
  expect(problemsOf(catalog(model(), predictor(), model()))).toEqual([
    'entries[2].tag: "@acme/tiny" is already entries[0]',
  ])
  const [one] = model().implementations
  if (!one) throw new Error('no implementation')
  expect(problemsOf(catalog(model({ implementations: [one, one] })))).toEqual([
    `entries[0].implementations[1].id: "wasm" is already ${IMPLEMENTATION}`,
  ])
  const files = { ...one, resources: [...one.resources, ...one.resources] }
  expect(problemsOf(catalog(model({ implementations: [files] })))).toEqual([
    `${IMPLEMENTATION}.resources[1].name: "onnx/model.onnx" is already ${RESOURCE}`,
  ])
})

test('Files may lie beside the catalog of a browser extension, and in no other extension', () => {
  const base = 'chrome-extension://abc/inorigin/models/catalog.json'
  const [entry] = validate(catalog(model()), { base }).entries
  expect(entry?.implementations[0]?.resources[0]?.url).toBe(
    'chrome-extension://abc/inorigin/models/tiny/m.onnx',
  )
  const elsewhere = changed(`${RESOURCE}.url`, 'chrome-extension://def/m.onnx')
  expect(() => validate(elsewhere, { base })).toThrow('is not an http')
})

test('Only the catalog of the package has tags of @inorigin and devices of the app', () => {
  const reserved = catalog(model({ tag: '@inorigin/guide' }))
  expect(problemsOf(reserved)[0]).toMatch(/^entries\[0\]\.tag: tags of @inorigin are reserved/)
  expect(validate(reserved, { embedded: true }).entries).toHaveLength(1)
  const document = { ...catalog(model()), devices: ['wasm'] }
  expect(problemsOf(document)).toEqual([
    "devices: only the package's own catalog has it; delete it",
  ])
  expect(validate(document, { embedded: true }).devices).toEqual(['wasm'])
  expect(problemsOf({ ...document, devices: ['npu'] })[0]).toMatch(/^devices\[0\]: /)
})

test('A prototype in the document is refused', () => {
  const proto = '"__proto__":{"tag":"@inorigin/x"},"name"'
  const text = JSON.stringify(catalog(model())).replace('"name"', proto)
  expect(problemsOf(JSON.parse(text)).join()).toContain('__proto__')
})
