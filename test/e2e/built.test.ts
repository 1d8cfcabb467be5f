/**
 * What must hold of the package as it is built.
 *
 * @module-tag everyday
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { parseSync, Visitor } from 'vite'
import { expect, test } from 'vitest'
import { BUDGETS, sizeReport, sizes } from '../../.ci/build/size.ts'
import { toMlcCatalog } from '../../src/catalog/mlc/expand-entry.ts'
import { MLC_LIST } from '../../src/catalog/mlc/list.ts'

const DIST = join(import.meta.dirname, '../../dist')

const read = (name: string): string => readFileSync(join(DIST, name), 'utf8')

function files(): string[] {
  return readdirSync(DIST, { recursive: true, encoding: 'utf8' })
}

test('stays within its size', () => {
  expect(
    sizes(DIST).filter(({ size, limit }) => size > limit),
    sizeReport(DIST),
  ).toEqual([])
})

test('every entry point has a limit of its size', () => {
  const { exports } = JSON.parse(readFileSync(join(DIST, '../package.json'), 'utf8')) as {
    exports: Record<string, string | { default: string }>
  }
  const scripts = Object.values(exports)
    .map((entry) => (typeof entry === 'string' ? entry : entry.default))
    .filter((path) => path.endsWith('.js'))
  const limited = BUDGETS.map(({ file }) => `./dist/${file}`)
  expect(limited.toSorted()).toEqual(scripts.toSorted())
})

test('the service worker is one classic script', () => {
  const { program, errors } = parseSync('sw.js', read('sw.js'), { sourceType: 'script' })
  expect(errors).toEqual([])
  const imports: unknown[] = []
  new Visitor({ ImportExpression: (node) => imports.push(node) }).visit(program)
  expect(imports).toEqual([])
})

test('modules for the browser import nothing that a bundler would have to find, but React', () => {
  const modules = files().filter(
    (name) => name.endsWith('.js') && !/^(sw|cli|vite)\.js$/.test(name),
  )
  expect(modules).toEqual(expect.arrayContaining(['index.js', 'worker.js', 'model-worker.js']))
  for (const name of modules) {
    const { module } = parseSync(name, read(name))
    const requests = [
      ...module.staticImports.map((item) => item.moduleRequest.value),
      ...module.staticExports.flatMap((item) =>
        item.entries.flatMap(({ moduleRequest }) => moduleRequest?.value ?? []),
      ),
    ]
    expect(
      requests.filter((request) => !request.startsWith('.')),
      name,
    ).toEqual(name === 'react.js' ? ['react'] : [])
  }
})

test('leaves the runtime to the package that ships it', () => {
  expect(files().filter((name) => name.endsWith('.wasm'))).toEqual(['llguidance.wasm'])
  const isLarge = (name: string) => name.endsWith('.js') && read(name).length > 500_000
  const [engine = '', ...others] = files().filter((name) => /(^|\/)mlc-/.test(name))
  expect([isLarge(engine), others]).toEqual([true, []])
  // No page loads the command line.
  expect(files().filter((name) => isLarge(name) && ![engine, 'cli.js'].includes(name))).toEqual([])
  for (const name of ['index.js', 'worker.js', 'sw.js', 'sw/index.js', 'model-worker.js']) {
    expect(read(name)).not.toContain(engine.replace('chunks/', ''))
  }
})

test('has the module of constraints as a file of its own, which only its worker and models load', () => {
  const module = readFileSync(join(DIST, 'llguidance.wasm'))
  const told = readFileSync(join(DIST, '../src/constraint/llguidance.json'), 'utf8')
  expect(createHash('sha256').update(module).digest('hex')).toBe(JSON.parse(told).sha256)
  const has = (name: string) => read(name).includes('set_vocabulary')
  for (const entry of ['index.js', 'worker.js', 'sw.js', 'sw/index.js']) {
    expect(reach(entry).filter(has), entry).toEqual([])
  }
  for (const entry of ['model-worker.js', 'vocabulary-worker.js']) {
    expect(reach(entry).filter(has), entry).toHaveLength(1)
  }
})

/** A script and all that it loads, at once or later. */
function reach(entry: string): string[] {
  const found = new Set([entry])
  for (const name of found) {
    const { program, module } = parseSync(name, read(name))
    const requests = module.staticImports.map((item) => item.moduleRequest.value)
    for (const item of module.staticExports) {
      requests.push(...item.entries.flatMap(({ moduleRequest }) => moduleRequest?.value ?? []))
    }
    new Visitor({
      ImportExpression: ({ source }) => {
        if (source.type === 'Literal') requests.push(String(source.value))
        // Minified, a text is a template without places in it.
        const [text, ...others] = source.type === 'TemplateLiteral' ? source.quasis : []
        if (text && others.length === 0) requests.push(text.value.cooked ?? '')
      },
    }).visit(program)
    const own = requests.filter((request) => request.startsWith('.'))
    for (const request of own) found.add(posix.join(posix.dirname(name), request))
  }
  return [...found]
}

test('nothing of WebLLM is in what a page or the service worker loads', () => {
  const marks = ['MLCEngine', 'binary-mlc-llm-libs', 'mlc-chat-config', 'tvmjs']
  const marked = (names: readonly string[]): string[] =>
    names.filter((name) => marks.some((mark) => read(name).includes(mark)))
  expect(marked([...reach('index.js'), ...reach('sw.js'), ...reach('sw/index.js')])).toEqual([])
  // The list is loaded by the host for catalogs that name a model of it, the engine by its worker.
  const host = reach('worker.js')
  const list = host.filter((name) => read(name).includes('binary-mlc-llm-libs'))
  expect(list).toEqual([expect.stringMatching(/^chunks\/list-/)])
  expect(host.filter((name) => read(name).includes('MLCEngine'))).toEqual([])
  const engine = reach('model-worker.js').filter((name) =>
    read(name).includes('binary-mlc-llm-libs'),
  )
  expect(engine).toEqual([expect.stringMatching(/^chunks\/mlc-/)])
})

test("has the catalog of WebLLM's models, to be fetched and to be imported", async () => {
  const fetched = JSON.parse(read('catalogs/mlc.json'))
  const { default: imported } = await import(join(DIST, 'catalogs/mlc.js'))
  expect(imported).toEqual(fetched)
  expect(fetched).toEqual(JSON.parse(JSON.stringify(toMlcCatalog(MLC_LIST))))
  expect(fetched.entries).toContainEqual(
    expect.objectContaining({ tag: '@mlc-ai/smollm2-360m-instruct' }),
  )
})

test('describes the catalog to editors', () => {
  const schema = JSON.parse(read('catalog.schema.json'))
  expect(schema.required).toEqual(['version', 'entries'])
  expect(schema.properties).toHaveProperty('$schema')
})
