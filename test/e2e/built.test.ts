/** What must hold of the package as it is built. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync, Visitor } from 'vite'
import { expect, test } from 'vitest'
import { sizeReport, sizes } from '../../.ci/build/size.ts'

const DIST = join(import.meta.dirname, '../../dist')

const read = (name: string): string => readFileSync(join(DIST, name), 'utf8')

function files(): string[] {
  return readdirSync(DIST, { recursive: true, encoding: 'utf8' })
}

test('stays within its size', () => {
  expect(sizes(DIST).filter(({ size, limit }) => size > limit), sizeReport(DIST)).toEqual([])
})

test('the service worker is one classic script', () => {
  const { program, errors } = parseSync('sw.js', read('sw.js'), { sourceType: 'script' })
  expect(errors).toEqual([])
  const imports: unknown[] = []
  new Visitor({ ImportExpression: (node) => imports.push(node) }).visit(program)
  expect(imports).toEqual([])
})

test('modules for the browser import nothing that a bundler would have to find', () => {
  const modules = files().filter((name) => name.endsWith('.js') && !/^(sw|cli)\.js$/.test(name))
  expect(modules).toEqual(expect.arrayContaining(['index.js', 'worker.js', 'model-worker.js']))
  for (const name of modules) {
    const { module } = parseSync(name, read(name))
    const requests = [
      ...module.staticImports.map((item) => item.moduleRequest.value),
      ...module.staticExports.flatMap((item) =>
        item.entries.flatMap(({ moduleRequest }) => moduleRequest?.value ?? []),
      ),
    ]
    expect(requests.filter((request) => !request.startsWith('.')), name).toEqual([])
  }
})

test('leaves the runtime to the package that ships it', () => {
  expect(files().filter((name) => name.endsWith('.wasm'))).toEqual([])
  const isLarge = (name: string) => name.endsWith('.js') && read(name).length > 500_000
  const [engine = '', ...others] = files().filter((name) => /(^|\/)mlc-/.test(name))
  expect([isLarge(engine), others]).toEqual([true, []])
  const largest = files().filter((name) => isLarge(name) && name !== engine)
  // Grammars are compiled by a wasm module of its own, in a chunk that is loaded with the first of them.
  expect(largest.map((name) => read(name).includes('GrammarMatcher'))).toEqual([true])
  const [grammars = ''] = largest.map((name) => name.replace('chunks/', ''))
  for (const name of ['index.js', 'worker.js', 'sw.js', 'sw/index.js', 'model-worker.js']) {
    expect(read(name)).not.toContain(engine.replace('chunks/', ''))
  }
  for (const name of ['index.js', 'worker.js', 'sw.js']) expect(read(name)).not.toContain(grammars)
})

test('describes the catalog to editors', () => {
  const schema = JSON.parse(read('catalog.schema.json'))
  expect(schema.required).toEqual(['version', 'entries'])
  expect(schema.properties).toHaveProperty('$schema')
})
