/** The architecture's one rule: imports only point down the list. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { parseSync, Visitor } from 'vite'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')

/** From the top down. A part is a folder, or files that stand in for one. */
const LAYERS: readonly (readonly string[])[] = [
  ['demo'],
  // What `npm run ask` shares with the tests.
  ['test/setup'],
  ['sw'],
  ['src/index.ts', 'src/serve.ts', 'src/control.ts', 'src/register.ts', 'src/cli.ts', 'src/cli'],
  ['src/server.ts', 'src/typed.ts', 'src/given.ts'],
  ['src/wire'],
  ['src/host'],
  ['src/link'],
  ['src/generation'],
  ['src/predictor'],
  ['src/engine/onnx', 'src/engine/webllm'],
  // What the engines share.
  ['src/engine'],
  ['src/catalog'],
  ['src/device'],
  ['src/store'],
  ['src/types', 'src/error.ts'],
]

/** What a part must not know although it is further down. */
const SECRETS: Readonly<Record<string, readonly string[]>> = {
  demo: ['src/wire', 'src/host', 'src/link', 'src/engine', 'src/store'],
  sw: ['src/host', 'src/generation', 'src/predictor', 'src/engine', 'src/device', 'src/store'],
  'src/wire': ['src/host', 'src/link', 'src/engine', 'src/device', 'src/store'],
  'src/generation': ['src/engine/onnx', 'src/engine/webllm', 'onnxruntime-web'],
  'src/engine': ['onnxruntime-web', '@mlc-ai/web-llm'],
  'src/engine/onnx': ['src/engine/webllm', '@mlc-ai/web-llm'],
  'src/engine/webllm': ['src/engine/onnx', 'onnxruntime-web'],
  'src/store': ['onnxruntime-web'],
}

/** What the file requests: imports, re-exports, `import()` and types of either kind. */
function requests(file: string, source: string): string[] {
  const found: string[] = []
  const add = (node: { source: unknown }): void => {
    const literal = node.source as { value?: unknown } | null
    if (typeof literal?.value === 'string') found.push(literal.value)
  }
  const { program, errors } = parseSync(file, source)
  expect(errors, file).toEqual([])
  new Visitor({
    ImportDeclaration: add,
    ExportNamedDeclaration: add,
    ExportAllDeclaration: add,
    ImportExpression: add,
    TSImportType: add,
  }).visit(program)
  return found
}

function partOf(path: string): { part: string; layer: number } | undefined {
  for (const [layer, parts] of LAYERS.entries()) {
    const part = parts.find((name) => path === name || path.startsWith(`${name}/`))
    if (part) return { part, layer }
  }
  return undefined
}

/** What is wrong with the imports of a file; `path` is relative to the repository. */
function faults(path: string, source: string): string[] {
  const from = partOf(path)
  if (!from) return [`${path} belongs to no part`]
  return requests(path, source).flatMap((request) => {
    const target = request.startsWith('.') ? join(dirname(path), request) : request
    const isSecret = SECRETS[from.part]?.some((name) => `${target}/`.startsWith(`${name}/`))
    if (isSecret) return [`${path} must not know ${request}`]
    if (!request.startsWith('.')) return []
    const to = partOf(target)
    if (!to) return [`${path} imports ${request}, which belongs to no part`]
    return to.layer < from.layer ? [`${path} imports ${request}, which is above it`] : []
  })
}

function sources(): string[] {
  return ['src', 'sw', 'demo'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => relative(ROOT, join(ROOT, folder, name)).replaceAll('\\', '/')),
  )
}

test('imports only point down', { timeout: 60_000 }, () => {
  const files = sources()
  expect(files.length).toBeGreaterThan(10)
  expect(files.flatMap((path) => faults(path, readFileSync(join(ROOT, path), 'utf8')))).toEqual([])
})

test.each([
  ['src/store/db.ts', "import { resolve } from '../catalog/resolve.ts'"],
  ['src/store/db.ts', "import type { Entry } from '../catalog/schema.ts'"],
  ['src/error.ts', "export * from './wire/errors.ts'"],
  ['src/engine/onnx/run.ts', "const queue = await import('../../host/queue.ts')"],
  ['src/engine/decoding.ts', "import { loadDecoder } from './onnx/load.ts'"],
  ['src/engine/webllm/index.ts', "import { loadDecoder } from '../onnx/load.ts'"],
  ['src/engine/onnx/load.ts', "import { openPipeline } from '../webllm/pipeline.ts'"],
  ['src/engine/sampling/logits.ts', "import type { Tensor } from 'onnxruntime-web'"],
  ['src/link/ask.ts', "type Queue = import('../host/queue.ts').Queue"],
  ['src/wire/handler.ts', "import { ask } from '../link/ask.ts'"],
  ['src/serve.ts', "import { attach } from '../sw/index.ts'"],
  ['src/index.ts', "import { page } from '../test/support/page.ts'"],
  ['src/generation/prompt.ts', "import { Tensor } from 'onnxruntime-web/wasm'"],
  ['src/elsewhere/new.ts', 'export const one = 1'],
])('refuses in %s: %s', (path, source) => {
  expect(faults(path, source)).toHaveLength(1)
})

test.each([
  ['src/link/protocol.ts', "import type { Entry } from '../catalog/schema.ts'"],
  ['src/wire/chat.ts', "import { fields } from './fields.ts'"],
  ['src/store/db.ts', "import { openDB } from 'idb'"],
  ['src/engine/webllm/index.ts', "import { openDecoding } from '../decoding.ts'"],
  ['demo/main.ts', "import { serve } from '../src/index.ts'"],
])('allows in %s: %s', (path, source) => {
  expect(faults(path, source)).toEqual([])
})
