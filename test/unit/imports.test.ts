/** The architecture's one rule: imports only point down the list. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { parseSync, Visitor } from 'vite'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')

/**
 * From the top down. A part is a folder, or files that stand in for one. A folder in another one is a
 * part of its own.
 */
const LAYERS: readonly (readonly string[])[] = [
  ['demo'],
  // What `npm run ask` shares with the tests.
  ['test/setup'],
  // Entry points on top of all others, which the core never imports: a store for frameworks, hooks, a
  // server for tests, the Prompt API, the Vite plugin.
  ['src/extras'],
  ['sw'],
  [
    'src/index.ts',
    'src/serve.ts',
    'src/create-server.ts',
    'src/control.ts',
    'src/register.ts',
    'src/allowed-servers.ts',
    'src/cli.ts',
    'src/cli',
  ],
  ['src/server.ts', 'src/typed.ts', 'src/validate-arguments.ts'],
  // What a tab and `inorigin bridge` say to each other, and the tab's end of it.
  ['src/bridge'],
  ['src/wire'],
  // The entries of the two workers, and the host that they serve.
  ['src/host'],
  ['src/host/tab'],
  ['src/host/requests'],
  ['src/host/library'],
  ['src/host/choice'],
  ['src/host/models'],
  // Messages between a page, the host worker and model workers.
  ['src/host/messages.ts'],
  ['src/draft'],
  ['src/link'],
  ['src/generation'],
  ['src/predictor'],
  ['src/engine/onnx', 'src/engine/webllm', 'src/engine/upstream'],
  // What the engines share.
  ['src/engine'],
  ['src/catalog'],
  ['src/device'],
  ['src/store'],
  ['src/values'],
  ['src/types', 'src/error.ts'],
  // It could be a package of its own.
  ['src/constraint'],
]

/** Parts and packages that a part must not import, although they are further down. */
const SECRETS: Readonly<Record<string, readonly string[]>> = {
  demo: ['src/wire', 'src/host', 'src/link', 'src/engine', 'src/store'],
  'src/wire': ['src/host', 'src/link', 'src/engine', 'src/predictor', 'src/device', 'src/store'],
  'src/link': [
    'src/generation',
    'src/predictor',
    'src/engine',
    'src/catalog',
    'src/device',
    'src/store',
    'src/values',
  ],
  'src/generation': ['src/engine/onnx', 'src/engine/webllm', 'src/engine/upstream'],
  'src/engine/onnx': ['src/engine/webllm'],
  'src/engine/webllm': ['src/engine/onnx'],
}

/** Runtimes, and the parts that may import them. */
const RUNTIMES: Readonly<Record<string, readonly string[]>> = {
  'onnxruntime-web': ['src/engine/onnx', 'src/predictor', 'src/cli'],
  '@mlc-ai/web-llm': ['src/engine/webllm'],
}

/** Parts of which the service worker's bundle contains nothing, over however many files. */
const NOT_IN_SERVICE_WORKER = [
  'src/host',
  'src/generation',
  'src/predictor',
  'src/engine',
  'src/catalog',
  'src/device',
  'src/store',
]

interface Request {
  specifier: string
  /** `true` if the import is erased with the types. */
  isType: boolean
}

interface ImportNode {
  source: unknown
  specifiers?: readonly object[]
}

/** Returns the imports, re-exports, `import()` and `import` types of a file. */
function requests(file: string, source: string): Request[] {
  const found: Request[] = []
  const kindOf = (node: object): unknown =>
    'importKind' in node ? node.importKind : 'exportKind' in node ? node.exportKind : undefined
  const add = (node: ImportNode): void => {
    const literal = node.source as { value?: unknown } | null
    if (typeof literal?.value !== 'string') return
    const { specifiers = [] } = node
    const isType =
      kindOf(node) === 'type' ||
      (specifiers.length > 0 && specifiers.every((each) => kindOf(each) === 'type'))
    found.push({ specifier: literal.value, isType })
  }
  const { program, errors } = parseSync(file, source)
  expect(errors, file).toEqual([])
  new Visitor({
    ImportDeclaration: add,
    ExportNamedDeclaration: add,
    ExportAllDeclaration: add,
    ImportExpression: add,
    TSImportType: ({ source: type }) => add({ source: type, importKind: 'type' } as ImportNode),
  }).visit(program)
  return found
}

/** Returns the part of a file: the innermost one that contains it. */
function partOf(path: string): { part: string; layer: number } | undefined {
  return LAYERS.flatMap((parts, layer) => parts.map((part) => ({ part, layer })))
    .filter(({ part }) => isIn(path, part))
    .toSorted((one, other) => other.part.length - one.part.length)[0]
}

/** Returns what is wrong with the imports of a file; `path` is relative to the repository. */
function faults(path: string, source: string): string[] {
  const from = partOf(path)
  if (!from) return [`${path} belongs to no part`]
  return requests(path, source).flatMap(({ specifier }) => {
    const target = specifier.startsWith('.') ? join(dirname(path), specifier) : specifier
    const isSecret = SECRETS[from.part]?.some((name) => isIn(target, name))
    if (isSecret) return [`${path} must not import ${specifier}`]
    if (!specifier.startsWith('.')) return runtimeFaults(path, from.part, specifier)
    const to = partOf(target)
    if (!to) return [`${path} imports ${specifier}, which belongs to no part`]
    return to.layer < from.layer ? [`${path} imports ${specifier}, which is above it`] : []
  })
}

const isIn = (path: string, part: string): boolean => `${path}/`.startsWith(`${part}/`)

function runtimeFaults(path: string, part: string, specifier: string): string[] {
  const runtime = Object.keys(RUNTIMES).find((name) => isIn(specifier, name))
  if (!runtime || RUNTIMES[runtime]?.includes(part)) return []
  return [`${path} must not import ${specifier}`]
}

/** Returns the files whose code is bundled with that of `entry`, `entry` included. */
function bundleOf(entry: string): string[] {
  const found = new Set([entry])
  for (const path of found) {
    for (const { specifier, isType } of requests(path, readFileSync(join(ROOT, path), 'utf8'))) {
      if (!isType && specifier.startsWith('.')) found.add(join(dirname(path), specifier))
    }
  }
  return [...found]
}

function sources(): string[] {
  return ['src', 'sw', 'demo'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => relative(ROOT, join(ROOT, folder, name)).replaceAll('\\', '/')),
  )
}

test('imports only point down', { timeout: 300_000 }, () => {
  const files = sources()
  expect(files.length).toBeGreaterThan(10)
  expect(files.flatMap((path) => faults(path, readFileSync(join(ROOT, path), 'utf8')))).toEqual([])
})

test('the architecture lists the folders in this order', () => {
  const page = readFileSync(join(ROOT, 'ARCHITECTURE.md'), 'utf8')
  const listed = Array.from(page.matchAll(/^- (`.*?): /gm), ([, head = '']) =>
    Array.from(head.matchAll(/`(.*?)\/?`/g), ([, path]) => path),
  )
  const withoutTests = LAYERS.filter(([part]) => part !== 'test/setup').map((parts) =>
    parts.map((part) => part.replace(/^src\//, '')),
  )
  expect(listed).toHaveLength(withoutTests.length)
  for (const [index, parts] of withoutTests.entries()) {
    expect(parts).toEqual(expect.arrayContaining(listed[index] ?? []))
    expect(listed[index]).toEqual(
      expect.arrayContaining(parts.filter((part) => !part.endsWith('.ts'))),
    )
  }
})

/** Returns the files of a circle of imports, type-only ones included; an empty list without one. */
function findCircle(importsOf: (path: string) => readonly string[], paths: readonly string[]) {
  const done = new Set<string>()
  const trail: string[] = []
  function visit(path: string): string[] {
    if (trail.includes(path)) return [...trail.slice(trail.indexOf(path)), path]
    if (done.has(path)) return []
    trail.push(path)
    for (const target of importsOf(path)) {
      const circle = visit(target)
      if (circle.length > 0) return circle
    }
    trail.pop()
    done.add(path)
    return []
  }
  return paths.map(visit).find((circle) => circle.length > 0) ?? []
}

const readImports = (path: string): string[] =>
  requests(path, readFileSync(join(ROOT, path), 'utf8'))
    .filter(({ specifier }) => specifier.startsWith('.') && specifier.endsWith('.ts'))
    .map(({ specifier }) => join(dirname(path), specifier))

test('imports form no circle', { timeout: 300_000 }, () => {
  expect(findCircle(readImports, sources())).toEqual([])
})

test('a circle is found', () => {
  const imports: Record<string, string[]> = { a: ['b', 'c'], b: ['c'], c: ['d'], d: ['b'] }
  expect(findCircle((path) => imports[path] ?? [], ['a'])).toEqual(['b', 'c', 'd', 'b'])
})

test('the service worker contains nothing that computes or stores', () => {
  const bundle = bundleOf('sw/index.ts')
  expect(bundle).toContain('src/wire/handler.ts')
  const parts = NOT_IN_SERVICE_WORKER
  expect(bundle.filter((path) => parts.some((part) => isIn(path, part)))).toEqual([])
})

test.each([
  ['src/store/db.ts', "import { resolve } from '../catalog/find-entry.ts'"],
  ['src/store/db.ts', "import type { Entry } from '../catalog/schema.ts'"],
  ['src/error.ts', "export * from './wire/errors.ts'"],
  ['src/engine/onnx/run.ts', "const queue = await import('../../host/requests/queue.ts')"],
  ['src/engine/decoder-engine.ts', "import { loadDecoder } from './onnx/load.ts'"],
  ['src/engine/webllm/index.ts', "import { loadDecoder } from '../onnx/load.ts'"],
  ['src/engine/onnx/load.ts', "import { openPipeline } from '../webllm/pipeline.ts'"],
  ['src/engine/sampling/logits.ts', "import type { Tensor } from 'onnxruntime-web'"],
  ['src/host/models/models.ts', "import { createSelector } from '../choice/selector.ts'"],
  ['src/host/choice/selector.ts', "import type { Entries } from '../library/entries.ts'"],
  ['src/host/library/entries.ts', "import { createQueue } from '../requests/queue.ts'"],
  ['src/host/requests/queue.ts', "import { joinElection } from '../tab/election.ts'"],
  ['src/host/tab/page.ts', "import { openHost } from '../open-host.ts'"],
  ['src/draft/plan.ts', "import { createModels } from '../host/models/models.ts'"],
  ['src/link/ask.ts', "type Queue = import('../host/requests/queue.ts').Queue"],
  ['src/link/protocol.ts', "import type { Entry } from '../catalog/schema.ts'"],
  ['src/wire/handler.ts', "import { ask } from '../link/ask.ts'"],
  ['src/serve.ts', "import { attach } from '../sw/index.ts'"],
  ['src/index.ts', "import { page } from '../test/support/page.ts'"],
  ['src/index.ts', "export { createModelStore } from './extras/store.ts'"],
  ['src/server.ts', "import type { ModelView } from './extras/store.ts'"],
  ['sw/index.ts', "import { inorigin } from '../src/extras/vite/plugin.ts'"],
  ['src/generation/plan.ts', "import { Tensor } from 'onnxruntime-web/wasm'"],
  ['src/elsewhere/new.ts', 'export const one = 1'],
])('refuses in %s: %s', (path, source) => {
  expect(faults(path, source)).toHaveLength(1)
})

test.each([
  ['src/link/ask.ts', "import type { Caller } from '../types/index.ts'"],
  ['src/host/open-host.ts', "import { hostPage } from './tab/page.ts'"],
  ['src/host/requests/retry.ts', "import { createModels } from '../models/models.ts'"],
  ['src/wire/chat.ts', "import { fields } from './fields.ts'"],
  ['src/store/db.ts', "import { openDB } from 'idb'"],
  ['src/engine/webllm/index.ts', "import { openDecoderEngine } from '../decoder-engine.ts'"],
  ['demo/main.ts', "import { serve } from '../src/index.ts'"],
  ['src/extras/vite/plugin.ts', "import type { AppFiles } from '../../../sw/keep-app.ts'"],
])('allows in %s: %s', (path, source) => {
  expect(faults(path, source)).toEqual([])
})
