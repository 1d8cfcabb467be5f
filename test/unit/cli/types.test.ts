/** Types of predictors, checked by a compiler. */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { generateTypes, toSchemaType } from '../../../src/cli/commands/types.ts'
import type { PredictorEntry } from '../../../src/catalog/schema.ts'
import { catalog, model, predictor } from '../catalog/entries.ts'
import { freshFolder, ROOT } from './graphs.ts'

type Signature = PredictorEntry['signature']

const names = ['low', "the 'high'"].map((name, value) => ({ name, value }))

const numbers = { type: 'array', items: { type: 'number' } } as const
const signature: Signature = {
  inputs: [
    { name: 'x', type: 'float32', description: 'Of any length. */' },
    { name: 'ids.0', type: 'int64', description: 'Two\nlines.' },
    { name: 'mode', type: 'int32', enumeration: names, defaultValue: 'low' },
    { name: 'image', type: 'image', optional: true },
    { name: 'points', type: 'list', schema: numbers, optional: true },
    { name: 'file', type: 'binary', optional: true },
    { name: 'words', type: 'string', optional: true },
    { name: 'flag', type: 'bool', optional: true },
  ],
  outputs: [
    { name: 'y', type: 'float16' },
    { name: 'one', type: 'int64' },
    { name: 'many', type: 'bool' },
    { name: 'kind', type: 'int32', enumeration: names },
    { name: 'counts', type: 'dict' },
    { name: 'picture', type: 'image' },
  ],
}

const bindings = {
  one: { tensor: 'one', shape: [1] },
  many: { tensor: 'many', shape: [null, 3] },
  kind: { tensor: 'kind', shape: [] },
  counts: { tensor: 'counts', keys: ['cats', 'dogs'] },
  picture: { tensor: 'picture', shape: [1, 3, null, null] },
}

function entry(): PredictorEntry {
  const given = predictor()
  const implementations = given.implementations.map((one) => ({ ...one, bindings }))
  return { ...given, tag: '@me/every', signature, implementations }
}

const GOOD = `
import { serve } from 'inorigin'
const server = await serve()
const canvas = document.querySelector('canvas')!
const { outputs, latency } = await server.predict('@me/every', {
  x: { data: new Float32Array(4), shape: [2, 2] }, 'ids.0': [[1n, 2], [3, 4]], mode: 'low', image: canvas,
  points: [1, 2], file: new Blob(), words: ['a', ['b']], flag: true,
})
export const y: number | Float32Array = typeof outputs.y === 'number' ? outputs.y : outputs.y.data
export const one: bigint = outputs.one
export const many: Uint8Array = outputs.many.data
export const kind: 'low' | "the 'high'" = outputs.kind
export const count = outputs.counts.dogs
export const picture: ImageData = outputs.picture
export const took: number = latency
await server.predict('@me/every', { x: [1, 2], 'ids.0': new BigInt64Array(2), image: [canvas, new ImageData(1, 1)] })
const handle = await server.predictor('@me/every')
export const again: bigint = (await handle.predict({ x: 1, 'ids.0': 2n })).outputs.one
// Tags that nothing is known of take and give anything.
const other = await server.predict('@you/other', { anything: 1 })
export const unknown: unknown = other.outputs['whatever']
declare const tag: string
await server.predict(tag, {})
`

/** Lines that must be refused. */
const BAD = [
  `await server.predict('@me/every', { 'ids.0': 1n })`,
  `await server.predict('@me/every', { x: 'text', 'ids.0': 1n })`,
  `await server.predict('@me/every', { x: new Int32Array(1), 'ids.0': 1n })`,
  `await server.predict('@me/every', { x: 1, 'ids.0': 1n, mode: 'middle' })`,
  `await server.predict('@me/every', { x: 1, 'ids.0': 1n, more: 1 })`,
  `await server.predict('@me/every', { x: 1, 'ids.0': 1n, points: ['a'] })`,
  `export const text: string = outputs.one`,
  `export const middle: 'middle' = outputs.kind`,
  `export const nothing = outputs.nothing`,
  `export const length = outputs.y.data`,
]

test('A compiler accepts the generated types, and refuses wrong code', () => {
  const head = `import { serve } from 'inorigin'
const server = await serve()
const { outputs } = await server.predict('@me/every', { x: 1, 'ids.0': 1n })
`
  const compilerOptions = {
    strict: true,
    noEmit: true,
    types: [],
    target: 'ES2023',
    module: 'ESNext',
    moduleResolution: 'bundler',
    lib: ['ES2023', 'DOM', 'DOM.Iterable', 'DOM.AsyncIterable'],
    allowImportingTsExtensions: true,
    skipLibCheck: true,
    paths: { inorigin: [join(ROOT, 'src/index.ts')] },
  }
  const folder = freshFolder({
    'catalog.json': JSON.stringify(catalog(model(), entry())),
    'good.ts': GOOD,
    'bad.ts': head + BAD.join('\n'),
    'tsconfig.json': JSON.stringify({ compilerOptions, include: ['*.ts'] }),
  })
  const { text, tags } = generateTypes([join(folder, 'catalog.json')])
  expect(tags).toEqual(['@me/every'])
  writeFileSync(join(folder, 'predictors.d.ts'), text)
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
  const { stdout } = spawnSync(process.execPath, [compiler, '-p', folder], { encoding: 'utf8' })
  const errors = stdout.split('\n').filter((line) => line.includes('error TS'))
  const lines = errors.map((error) => /(\w+\.ts)\((\d+),/.exec(error)?.slice(1).join(':'))
  expect([...new Set(lines)], stdout).toEqual(BAD.map((_, index) => `bad.ts:${index + 4}`))
}, 60_000)

test('The first catalog that has a tag decides', () => {
  const bare = { inputs: [], outputs: [] }
  const plain = { ...predictor(), tag: '@me/every', signature: bare }
  const folder = freshFolder({
    'one.json': JSON.stringify(catalog(plain)),
    'two.json': JSON.stringify(catalog(entry(), predictor())),
  })
  const { text, tags } = generateTypes(['one.json', 'two.json'].map((name) => join(folder, name)))
  expect(tags).toEqual(['@me/every', '@acme/digits'])
  const none = 'Record<string, never>'
  const lines = [`    '@me/every': {`, `inputs: ${none}`, `outputs: ${none}\n    }`]
  expect(text).toContain(lines.join('\n      '))
})

test('An invalid catalog is named', () => {
  const folder = freshFolder({ 'c.json': '{"version": 1, "entries": [{"type": "predictor"}]}' })
  expect(() => generateTypes([join(folder, 'c.json')])).toThrow(
    /c\.json cannot be used:\nentries\[0\]\./,
  )
  expect(() => generateTypes([join(folder, 'd.json')])).toThrow(/There is no file .*d\.json/)
})

const closed = { type: 'object', additionalProperties: false }
test.each<[unknown, string]>([
  [{ type: 'string' }, 'string'],
  [{ type: ['string', 'null'] }, 'string | null'],
  [{ enum: ['a', 1, null, true] }, "'a' | 1 | null | true"],
  [{ const: { a: [1, "it's"] } }, "{ a: [1, 'it\\'s'] }"],
  [{ type: 'array', items: { type: ['string', 'number'] } }, '(string | number)[]'],
  [{ prefixItems: [{ type: 'string' }], items: false }, '[string?]'],
  [{ type: 'array' }, 'unknown[]'],
  [
    { ...closed, properties: { a: { type: 'integer' }, 'b c': {} }, required: ['a'] },
    "{ a: number; 'b c'?: unknown }",
  ],
  [{ type: 'object', additionalProperties: { type: 'number' } }, '{ [key: string]: number }'],
  [closed, 'Record<string, never>'],
  [{ anyOf: [{ type: 'string' }, numbers] }, 'string | number[]'],
  [{ allOf: [{ type: 'object', required: ['a'] }, true] }, '{ [key: string]: unknown } & unknown'],
  [{ $ref: '#/$defs/n', $defs: { n: { type: 'number' } } }, 'number'],
  [{ $ref: '#' }, 'unknown'],
  [{ $ref: '#/$defs/t', $defs: { t: { ...numbers, items: { $ref: '#/$defs/t' } } } }, 'unknown[]'],
  [true, 'unknown'],
  [false, 'never'],
])('The schema %j becomes %s', (schema, type) => {
  expect(toSchemaType(schema, 'output')).toBe(type)
})
