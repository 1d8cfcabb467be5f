/** `docs/errors.md` against the source: every kind, every code, and nothing else. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ERROR_CODES, type ErrorKind, InoriginError, STATUS } from '../../src/error.ts'
import { wireError } from '../../src/wire/errors.ts'

const ROOT = join(import.meta.dirname, '../..')
const rows = readFileSync(join(ROOT, 'docs/errors.md'), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| `'))
  .map((line) => line.split('|').map((cell) => cell.trim()))

const source = ['src', 'sw']
  .flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((path) =>
      join(ROOT, folder, path),
    ),
  )
  .filter((path) => path.endsWith('.ts') && path !== join(ROOT, 'src/error.ts'))
  .map((path) => readFileSync(path, 'utf8'))
  .join('\n')

const isKind = (cell = ''): boolean => cell.replaceAll('`', '') in STATUS
const unquoted = (cell = ''): string => cell.replaceAll('`', '')

test('each kind has its status and its type on the wire', () => {
  const documented = rows
    .filter(([, first]) => isKind(first))
    .map(([, kind, status, type]) => [unquoted(kind), Number(status), unquoted(type)])
  const expected = (Object.keys(STATUS) as ErrorKind[]).map((kind) => [
    kind,
    STATUS[kind],
    wireError(new InoriginError(kind, '')).type,
  ])
  expect(documented).toEqual(expected)
})

test('each code is documented once, with kinds that exist, a cause and a remedy', () => {
  const documented = rows.filter(([, first]) => !isKind(first))
  expect(documented.map(([, code]) => unquoted(code))).toEqual([...ERROR_CODES])
  for (const [, code, kinds, cause, remedy] of documented) {
    for (const kind of (kinds ?? '').split(',')) expect(isKind(kind.trim()), code).toBe(true)
    expect([cause, remedy], code).not.toContain('')
  }
})

test.each([...ERROR_CODES])('%s is a code that something can throw', (code) => {
  expect(source).toContain(`'${code}'`)
})
