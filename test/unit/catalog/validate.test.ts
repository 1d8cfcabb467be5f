import { expect, test } from 'vitest'
import { validateCatalog } from '../../../src/catalog/validate.ts'
import { catalog, HASH, model, predictor, thrownBy } from './entries.ts'

const options = { source: 'here', base: 'https://app.test/models/catalog.json', embedded: false }

/** The problems of a document that is refused. */
function problemsOf(document: unknown): readonly string[] {
  const error = thrownBy(() => validateCatalog(document, options))
  expect(error).toMatchObject({ kind: 'invalid_request', code: 'invalid_catalog' })
  return error.details?.['problems'] as string[]
}

/** A valid catalog with one place changed. */
function changed(path: readonly (string | number)[], value: unknown): unknown {
  const document = structuredClone(catalog(model(), predictor()))
  let place: unknown = document
  for (const key of path.slice(0, -1)) place = (place as Record<string | number, unknown>)[key]
  ;(place as Record<string | number, unknown>)[path.at(-1) ?? ''] = value
  return document
}

test('makes every URL absolute and changes nothing else', () => {
  const found = validateCatalog(catalog(model(), predictor()), options)
  const urls = found.entries.map((entry) => entry.implementations[0]?.resources[0]?.url)
  expect(urls).toEqual(Array(2).fill('https://app.test/models/tiny/m.onnx'))
  expect(found.entries[0]).toMatchObject({ tag: '@acme/tiny', maxInputTokens: 2048 })
  expect(validateCatalog(found, { ...options, base: 'https://other.test/' })).toEqual(found)
})

const resource = ['entries', 0, 'implementations', 0, 'resources', 0]

test.each([
  [[...resource, 'sha256'], 'abc', 'entries[0].implementations[0].resources[0].sha256: a sha256'],
  [[...resource, 'bytes'], -1, 'entries[0].implementations[0].resources[0].bytes: '],
  [[...resource, 'bytes'], '10', 'entries[0].implementations[0].resources[0].bytes: '],
  [[...resource, 'type'], 'zip', 'entries[0].implementations[0].resources[0].type: '],
  [[...resource, 'colour'], 1, 'entries[0].implementations[0].resources[0].colour: '],
  [['entries', 0, 'tag'], 'tiny', 'entries[0].tag: a tag looks like @owner/name'],
  [['entries', 0, 'tag'], '@Acme/tiny', 'entries[0].tag: a tag looks like @owner/name'],
  [['entries', 0, 'created'], 'yesterday', 'entries[0].created: '],
  [['entries', 0, 'maxInputTokens'], 0, 'entries[0].maxInputTokens: '],
  [['entries', 1, 'signature', 'inputs', 0, 'type'], 'x', 'entries[1].signature.inputs[0].type: '],
  [['entries', 1, 'type'], 'thing', 'entries[1].type: '],
  [['entries', 0, 'implementations'], [], 'entries[0].implementations: '],
  [['version'], 2, 'version: '],
  [
    ['entries', 1, 'implementations', 0, 'bindings'],
    { 'input.1': { tensor: 1 } },
    'entries[1].implementations[0].bindings["input.1"].tensor: ',
  ],
  [[...resource, 'partBytes'], 1.5, 'entries[0].implementations[0].resources[0].partBytes: '],
  [['entries'], {}, 'entries: '],
])('says where it is wrong: %j = %j', (path, value, problem) => {
  expect(problemsOf(changed(path, value))[0]).toContain(problem)
})

const INPUT = { name: 'x', type: 'float32' }
const TEXT = { tensor: 'ids', text: { tokenizer: 'tokenizer.json', most: 8 } }
test.each<[string, object, string]>([
  ['inputs', { inputs: [INPUT, INPUT] }, 'entries[0].signature.inputs[1].name: "x" is already'],
  ['outputs', { outputs: [INPUT, INPUT] }, 'entries[0].signature.outputs[1].name: "x" is already'],
  [
    'members',
    {
      inputs: [
        {
          ...INPUT,
          enumeration: [
            { name: 'a', value: 1 },
            { name: 'a', value: 2 },
          ],
        },
      ],
    },
    'entries[0].signature.inputs[0].enumeration[1].name: ',
  ],
  [
    'range',
    { inputs: [{ ...INPUT, range: { min: 5, max: 1 } }] },
    'entries[0].signature.inputs[0].range: min 5 is above max 1',
  ],
  [
    'default',
    { inputs: [{ ...INPUT, range: { max: 1 }, defaultValue: 7 }] },
    'entries[0].signature.inputs[0].defaultValue: 7 is out of its range',
  ],
  [
    'default member',
    { inputs: [{ ...INPUT, enumeration: [{ name: 'a', value: 1 }], defaultValue: 'b' }] },
    'entries[0].signature.inputs[0].defaultValue: is not a member of',
  ],
  [
    'binding',
    { bindings: { 'z.1': { tensor: 'z' } } },
    'entries[0].implementations[0].bindings["z.1"]: there is no parameter z.1',
  ],
  [
    'tokenizer',
    { bindings: { x: TEXT } },
    'entries[0].implementations[0].bindings["x"].text.tokenizer: there is no resource tokenizer.json',
  ],
  [
    'labels',
    { bindings: { x: { tensor: 'x', steps: [{ step: 'ctc', labels: { file: 'keys.txt' } }] } } },
    'entries[0].implementations[0].bindings["x"].steps[0].labels.file: there is no resource keys.txt',
  ],
])(
  'parameters that do not go together are named: %s',
  (_, { bindings, ...signature }: { bindings?: object }, problem) => {
    const entry = predictor({ signature: { inputs: [INPUT], outputs: [], ...signature } as never })
    const implementations = entry.implementations.map((one) => ({
      ...one,
      ...(bindings && { bindings }),
    }))
    expect(problemsOf(catalog({ ...entry, implementations } as never))[0]).toContain(problem)
  },
)

const BIT = {
  enumeration: [
    { name: 'on', value: 1 },
    { name: 'off', value: 0 },
  ],
}
test.each<[string, object]>([
  [
    'two classes of one name',
    {
      outputs: [
        {
          ...INPUT,
          enumeration: [
            { name: 'crane', value: 134 },
            { name: 'crane', value: 517 },
          ],
        },
      ],
    },
  ],
  ['the name of a member', { inputs: [{ ...INPUT, ...BIT, defaultValue: ['on', 0] }] }],
  ['a boolean for a number', { inputs: [{ name: 'x', type: 'bool', ...BIT, defaultValue: true }] }],
  [
    'a tensor of members',
    { inputs: [{ ...INPUT, ...BIT, defaultValue: { data: [1, 0], shape: [2] } }] },
  ],
])('parameters that a prediction takes are taken: %s', (_, signature) => {
  const entry = predictor({ signature: { inputs: [], outputs: [], ...signature } as never })
  expect(validateCatalog(catalog(entry as never), options).entries).toHaveLength(1)
})

test.each([null, 'text', 7, []])('says that %j is no catalog at all', (document) => {
  expect(problemsOf(document)[0]).toMatch(/^(the document|version|entries): /)
})

test('lists some problems and counts the rest', () => {
  const entries = Array.from({ length: 9 }, (_, index) => ({ ...model(), tag: `bad ${index}` }))
  expect(() => validateCatalog({ version: 1, entries }, options)).toThrow(
    /cannot be used:\n(entries\[\d\]\.tag: .*\n){5}\(and 4 more\)$/,
  )
})

test('knows what a model compiled by MLC must have', () => {
  const [one] = model().implementations
  if (!one) throw new Error('no implementation')
  const implementations = [{ ...one, engine: 'mlc' as const, device: 'wasm' as const }]
  expect(problemsOf(catalog(model({ implementations })))).toEqual([
    'entries[0].implementations[0].device: mlc runs only on webgpu',
    'entries[0].implementations[0].resources: mlc needs the compiled library of the model, of type wasm',
  ])
  expect(problemsOf(catalog(predictor({ implementations })))[0]).toBe(
    'entries[0].implementations[0].engine: mlc runs only language models',
  )
})

test('refuses a tag twice', () => {
  expect(problemsOf(catalog(model(), predictor(), model()))).toEqual([
    'entries[2].tag: "@acme/tiny" is already entries[0]',
  ])
})

test('refuses an implementation id or a file name twice', () => {
  const [one] = model().implementations
  if (!one) throw new Error('no implementation')
  const twice = catalog(model({ implementations: [one, one] }))
  expect(problemsOf(twice)).toEqual([
    'entries[0].implementations[1].id: "wasm" is already entries[0].implementations[0]',
  ])
  const files = { ...one, resources: [...one.resources, ...one.resources] }
  expect(problemsOf(catalog(model({ implementations: [files] })))).toEqual([
    'entries[0].implementations[0].resources[1].name: "onnx/model.onnx" is already ' +
      'entries[0].implementations[0].resources[0]',
  ])
})

test.each(['javascript:alert(1)', 'file:///etc/passwd', 'data:,x', 'blob:https://a.t/1', 'http:'])(
  'refuses the URL %s',
  (url) => {
    expect(problemsOf(changed([...resource, 'url'], url))[0]).toBe(
      `entries[0].implementations[0].resources[0].url: "${url}" is not an http or https URL`,
    )
  },
)

test('takes files that lie beside the catalog of a browser extension', () => {
  const base = 'chrome-extension://abc/inorigin/models/catalog.json'
  const found = validateCatalog(catalog(model()), { ...options, base })
  const [url] = found.entries.map((entry) => entry.implementations[0]?.resources[0]?.url)
  expect(url).toBe('chrome-extension://abc/inorigin/models/tiny/m.onnx')
  const elsewhere = changed([...resource, 'url'], 'chrome-extension://def/m.onnx')
  expect(() => validateCatalog(elsewhere, { ...options, base })).toThrow('is not an http')
})

test('refuses tags of @inorigin, unless it comes with the package', () => {
  const document = catalog(model({ tag: '@inorigin/guide' }))
  expect(problemsOf(document)[0]).toMatch(/^entries\[0\]\.tag: tags of @inorigin are reserved/)
  expect(validateCatalog(document, { ...options, embedded: true }).entries).toHaveLength(1)
})

test('takes the devices that an app has runtimes for from the package alone', () => {
  const document = { ...catalog(model()), devices: ['wasm'] }
  expect(problemsOf(document)).toEqual([
    "devices: only the package's own catalog has it; delete it",
  ])
  expect(validateCatalog(document, { ...options, embedded: true }).devices).toEqual(['wasm'])
  const unknown = { ...catalog(model()), devices: ['npu'] }
  expect(problemsOf(unknown)[0]).toMatch(/^devices\[0\]: /)
})

test('refuses chunk hashes that cannot be all of them', () => {
  const path = [...resource, 'chunks']
  expect(validateCatalog(changed(path, [HASH]), options).entries).toHaveLength(2)
  const [problem] = problemsOf(changed(path, [HASH, HASH]))
  expect(problem).toContain('resources[0].chunks: needs 1 hashes')
})

test('refuses an answer longer than prompt and answer together', () => {
  const [problem] = problemsOf(catalog(model({ maxOutputTokens: 4096 })))
  expect(problem).toContain('entries[0].maxOutputTokens')
})

test('is not fooled by prototypes in the document', () => {
  const proto = '"__proto__":{"tag":"@inorigin/x"},"name"'
  const text = JSON.stringify(catalog(model())).replace('"name"', proto)
  const document: unknown = JSON.parse(text)
  expect(problemsOf(document).join()).toContain('__proto__')
})

test.each([
  '2026-01-01',
  '2026-01-01T00:00:00+02',
  '2026-01-01T00:00:00 +02:00',
  '2026-02-31T00:00:00Z',
  '2026-13-01T00:00:00Z',
  '2026-01-01T25:00:00Z',
  'yesterday',
])('refuses %j as a time', (created) => {
  expect(problemsOf(changed(['entries', 0, 'created'], created))[0]).toContain(
    'entries[0].created: ',
  )
})

test.each(['2026-02-28T23:59:59Z', '2024-02-29T00:00:00.125+05:30'])('takes %j', (created) => {
  const document = changed(['entries', 0, 'created'], created)
  expect(validateCatalog(document, options).entries[0]?.created).toBe(created)
})

const escapes = [
  '../a',
  'a/../b',
  './a',
  'a/.',
  '/a',
  'a//b',
  'a\\b',
  '..',
  '',
  'a\n/../../b',
  'a\u2028/..',
]

test.each(escapes)('refuses %j as the name of a file', (name) => {
  expect(problemsOf(changed([...resource, 'name'], name))[0]).toContain(
    'entries[0].implementations[0].resources[0].name: a name is a path',
  )
})

test.each(['model.onnx', 'onnx/model_q4.onnx_data', '.hidden/..file..', 'a b/ü#?.bin'])(
  'takes %j as one',
  (name) => {
    const document = changed([...resource, 'name'], name)
    expect(
      validateCatalog(document, options).entries[0]?.implementations[0]?.resources[0]?.name,
    ).toBe(name)
  },
)

test('a state of unknown parameters is named', () => {
  const signature = { inputs: [INPUT], outputs: [] }
  const entry = predictor({ signature, states: [{ input: 'z', output: 'w' }] } as never)
  const problems = problemsOf(catalog(entry))
  expect(problems).toContain('entries[0].states[0].input: there is no input z')
  expect(problems).toContain('entries[0].states[0].output: there is no output w')
})
