/** Files are replaced at once, and never through a link. */
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { refreshCatalog } from '../../../src/cli/commands/refresh.ts'
import { init } from '../../../src/cli/init.ts'
import { writeProjectOptions } from '../../../src/cli/project-options.ts'
import { writeTypes } from '../../../src/cli/commands/types.ts'
import { writeBelow } from '../../../src/cli/write-file.ts'
import { onnxFile } from '../../support/onnx.ts'
import { addIn, catalogIn, expectWhole, freshFolder, passing } from './graphs.ts'

const { signal } = new AbortController()
const CATALOG = JSON.stringify({ version: 1, entries: [] })

const OPTIONS = { sw: 'sw.js', guide: true, mlc: false, webgpu: true }

/** Builds a package of a few bytes. */
function built(): { folder: string; fill: () => unknown } {
  const scripts =
    'index.js worker.js model-worker.js vocabulary-worker.js llguidance.wasm catalog.schema.json ' +
    'licenses.md chunks/a.js'
  const builds = ['.jspi', '.asyncify', ''].flatMap((build) =>
    ['mjs', 'wasm'].map((type) => `ort/ort-wasm-simd-threaded${build}.${type}`),
  )
  const files = [...scripts.split(' ').map((name) => `dist/${name}`), ...builds]
  const folder = freshFolder({
    ...Object.fromEntries(files.map((name) => [name, name])),
    'dist/models/catalog.json': CATALOG,
    'dist/sw.js': '/*! inorigin 0.0.0 */',
  })
  const [publicDir = '', dist = '', runtime = ''] = ['public', 'dist', 'ort'].map((name) =>
    join(folder, name),
  )
  return { folder, fill: () => init({ ...OPTIONS, publicDir, dist, runtime }) }
}

const names = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })

test('A file is replaced at once and keeps its permissions', () => {
  const folder = freshFolder({ 'a/old': 'old' })
  chmodSync(join(folder, 'a/old'), 0o640)
  const { ino } = statSync(join(folder, 'a/old'))
  expect(writeBelow(folder, 'a/old', { text: 'new one' })).toBe(7)
  expect(readFileSync(join(folder, 'a/old'), 'utf8')).toBe('new one')
  expect(statSync(join(folder, 'a/old'))).toMatchObject({ mode: 0o100640 })
  expect(statSync(join(folder, 'a/old')).ino).not.toBe(ino)
  expect(names(join(folder, 'a'))).toEqual(['old'])
})

test('A failure leaves the old file and no other', () => {
  const folder = freshFolder({ 'a/old': 'old', 'b/x': '', 'a/taken/x': '' })
  const write = (name: string, content: Parameters<typeof writeBelow>[2]) => () =>
    writeBelow(folder, name, content)
  expect(write('a/old', { from: join(folder, 'b') })).toThrow(/a\/old cannot be written/)
  expect(write('a/taken', { text: 'x' })).toThrow(/a\/taken cannot be written/)
  expect(write('a/old/x', { text: 'x' })).toThrow(/old\/x cannot be written/)
  expect(readFileSync(join(folder, 'a/old'), 'utf8')).toBe('old')
  expect(names(join(folder, 'a')).toSorted()).toEqual(['old', 'taken', join('taken', 'x')])
})

test.each([
  'public/sw.js',
  'public/inorigin',
  'public/inorigin/chunks',
  'public/inorigin/worker.js',
  'public/inorigin/files.json',
])('init refuses %s if it is a link, and writes nothing', (link) => {
  const { folder, fill } = built()
  const isFolder = !link.includes('.')
  const mine = '/*! inorigin 0.0.0, but mine */'
  const outside = join(folder, 'outside')
  if (isFolder) mkdirSync(outside)
  else writeFileSync(outside, mine)
  mkdirSync(join(folder, link, '..'), { recursive: true })
  symlinkSync(outside, join(folder, link))
  expect(fill).toThrow(`${join(folder, link)} is a link to ${outside}`)
  const written = names(join(folder, 'public'))
  const parents = link.split('/').slice(1, -1)
  expect(written.filter((name) => !join('public', name).startsWith(link))).toEqual(parents)
  if (isFolder) expect(names(outside)).toEqual([])
  else expect(readFileSync(outside, 'utf8')).toBe(mine)
})

test('init refuses a script that is a link to a missing file', () => {
  const { folder, fill } = built()
  mkdirSync(join(folder, 'public'))
  symlinkSync('../build/sw.js', join(folder, 'public/sw.js'))
  expect(fill).toThrow('sw.js is a link to ../build/sw.js')
  expect(lstatSync(join(folder, 'public/sw.js')).isSymbolicLink()).toBe(true)
})

test('init deletes nothing through a link', () => {
  const { folder, fill } = built()
  fill()
  const files = [{ name: 'old/mine.txt' }, { name: '.' }]
  writeFileSync(join(folder, 'public/inorigin/files.json'), JSON.stringify({ files }))
  mkdirSync(join(folder, 'outside'))
  writeFileSync(join(folder, 'outside/mine.txt'), 'mine')
  symlinkSync('../../outside', join(folder, 'public/inorigin/old'))
  expect(fill).toThrow('old is a link to ../../outside')
  expect(existsSync(join(folder, 'outside/mine.txt'))).toBe(true)
})

test('The public folder may be a link itself, for init and for add', async () => {
  const { folder, fill } = built()
  mkdirSync(join(folder, 'site'))
  symlinkSync('site', join(folder, 'public'))
  writeFileSync(join(folder, 'm.onnx'), onnxFile(passing({})))
  fill()
  await addIn(folder, 'm.onnx')
  expect(existsSync(join(folder, 'site/inorigin/worker.js'))).toBe(true)
  expect(catalogIn(folder).entries).toHaveLength(1)
  expectWhole(folder)
})

test.each([
  'public/inorigin',
  'public/inorigin/@me',
  'public/inorigin/@me/model',
  'public/inorigin/catalog.json',
  'public/inorigin/catalog.schema.json',
])('add refuses %s if it is a link, and changes nothing', async (link) => {
  const schema = { 'dist/catalog.schema.json': '{}' }
  const folder = freshFolder({ 'm.onnx': passing({}), ...schema, 'outside/file': CATALOG })
  const outside = join(folder, 'outside', link.includes('.') ? 'file' : '')
  mkdirSync(join(folder, link, '..'), { recursive: true })
  symlinkSync(outside, join(folder, link))
  const adding = addIn(folder, 'm.onnx', { force: true, dist: join(folder, 'dist') })
  await expect(adding).rejects.toMatchObject({
    kind: 'invalid_request',
    message: expect.stringContaining(`${join(folder, link)} is a link to ${outside}`),
  })
  expect(names(join(folder, 'outside'))).toEqual(['file'])
  expect(readFileSync(join(folder, 'outside/file'), 'utf8')).toBe(CATALOG)
  const written = names(join(folder, 'public')).map((name) => join('public', name))
  const others = written.filter((name) => !name.startsWith(link) && !link.startsWith(name))
  expect(others).toEqual([])
})

test.skipIf(process.platform === 'win32')('A name with a backslash is one name', () => {
  const folder = freshFolder({ 'outside.txt': 'mine' })
  symlinkSync('outside.txt', join(folder, 'a\\b'))
  expect(() => writeBelow(folder, 'a\\b', { text: 'x' })).toThrow('is a link to outside.txt')
  expect(lstatSync(join(folder, 'a\\b')).isSymbolicLink()).toBe(true)
})

test.each<[string, (path: string, folder: string) => unknown]>([
  ['types', (path) => writeTypes(path, { text: 'text', tags: [] })],
  ['options', (_, folder) => writeProjectOptions(folder, { ...OPTIONS, publicDir: 'public' })],
  ['a refreshed catalog', (file) => refreshCatalog({ file, onEntry: () => undefined, signal })],
])('It does not write %s through a link', async (_, run) => {
  const folder = freshFolder({ 'outside.json': CATALOG })
  symlinkSync('outside.json', join(folder, 'package.json'))
  const running = (async () => run(join(folder, 'package.json'), folder))()
  await expect(running).rejects.toThrow('package.json is a link to outside.json')
  expect(readFileSync(join(folder, 'outside.json'), 'utf8')).toBe(CATALOG)
  expect(names(folder).toSorted()).toEqual(['outside.json', 'package.json'])
})
