/** The licenses that travel with the package. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync, existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { licensesMarkdown, writeLicenses } from '../../.ci/build/licenses.ts'
import { TERMS } from '../../.ci/build/licenses/parts.ts'
import { licenseSections } from '../support/licenses.ts'

const OWN = { name: 'inorigin', version: '1.0.0', identifier: 'MIT', text: 'MIT License' }
const pack = (name: string, identifier: string, text?: string) => ({
  name,
  version: '1.2.3',
  identifier,
  ...(text !== undefined && { text }),
})

test('a package that comes with a license keeps it word by word', () => {
  const markdown = licensesMarkdown([OWN, pack('one', 'ISC', 'Copyright One\n\n## 1. Grant\n')])
  expect(licenseSections(markdown)).toEqual([
    ['inorigin', 'MIT License'],
    ['one', 'Copyright One\n\n## 1. Grant'],
  ])
})

test('a package that comes without gets its copyright and the text of its license, and so do its parts', () => {
  const sections = new Map(
    licenseSections(
      licensesMarkdown([pack('onnxruntime-web', 'MIT'), pack('@cfworker/json-schema', 'MIT')]),
    ),
  )
  expect([...sections.keys()]).toEqual([
    'onnxruntime-web',
    '@cfworker/json-schema',
    'Apache-2.0',
    'BSD-3-Clause',
    'MIT',
    'MPL-2.0',
  ])
  expect(sections.get('onnxruntime-web')).toMatch(
    /^Copyright \(c\) 2018 - present Microsoft Corporation\n\nPermission is hereby granted/,
  )
  expect(sections.get('onnxruntime-web')).toContain('### Eigen (MPL-2.0)')
  expect(sections.get('@cfworker/json-schema')).toContain('### Ajv (MIT)')
  expect(sections.get('MPL-2.0')).toContain('Mozilla Public License')
  expect([...sections.values()].every((text) => text.length > 100)).toBe(true)
})

test.each([
  [pack('none', 'MIT'), /none 1\.2\.3 has no license text.* \.ci\/build\/licenses\/parts\.ts/],
  [pack('blank', 'MIT', ' \n'), /blank 1\.2\.3 has no license text/],
  [
    pack('onnxruntime-web', 'GPL-3.0'),
    /onnxruntime-web 1\.2\.3 is under GPL-3\.0, and parts\.ts says MIT/,
  ],
])('the build fails for %j', (given, says) => {
  expect(() => licensesMarkdown([OWN, given])).toThrow(says)
})

test('every text that a package is said to be under exists', () => {
  for (const [name, { license }] of Object.entries(TERMS)) {
    expect(licensesMarkdown([pack(name, license)])).toContain(`## ${name} - 1.2.3 (${license})\n`)
  }
})

test('the lists of all bundles become one file, each package once', () => {
  const dist = mkdtempSync(join(tmpdir(), 'inorigin-licenses-'))
  onTestFinished(() => rmSync(dist, { recursive: true, force: true }))
  mkdirSync(join(dist, 'licenses'))
  const list = (name: string, packages: object[]) =>
    writeFileSync(join(dist, 'licenses', `${name}.json`), JSON.stringify(packages))
  list('modules', [pack('two', 'ISC', 'Two'), pack('one', 'ISC', 'One')])
  list('cli', [pack('one', 'ISC', 'One'), { ...pack('one', 'ISC', 'Newer'), version: '2.0.0' }])
  writeLicenses(dist, OWN)
  expect(existsSync(join(dist, 'licenses'))).toBe(false)
  expect(licenseSections(readFileSync(join(dist, 'licenses.md'), 'utf8'))).toEqual([
    ['inorigin', 'MIT License'],
    ['one', 'One'],
    ['one', 'Newer'],
    ['two', 'Two'],
  ])
})
