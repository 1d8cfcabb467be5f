/** The code of the documentation: it compiles, and runs in a page with the built package, the guide and the predictors. */
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bundleModules } from '../support/docs-code/bundle.ts'
import { listBlocks, listPages, ROOT } from '../support/docs-code/blocks.ts'
import { isModule, writeModules, type DocsFolder } from '../support/docs-code/modules.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

const WORKER = 'runs in a service worker: test/e2e/chat.test.ts, test/templates'
const TOOL = 'configures a tool: test/templates'
const RELOAD = 'reloads the page: test/e2e/isolation.test.ts'
const FILE = 'needs a file that the app has'
const HUB = 'needs a hub'
const PIPELINES = 'needs models from npm: test/e2e/pipelines.test.ts'
const CLICK = 'waits for a click: test/e2e/language-model.test.ts'
const BRIDGE = 'needs `inorigin bridge`: test/e2e/bridge.test.ts'

/**
 * The outcome of each block of a page, in their order: what it prints, or the reason why it is only
 * compiled.
 */
const OUTCOMES: Readonly<Record<string, readonly (RegExp | string)[]>> = {
  'README.md': [/browser|inorigin/],
  'docs/bridge.md': [BRIDGE, BRIDGE, BRIDGE, BRIDGE],
  'docs/choosing-a-model.md': [HUB, /^$/],
  'docs/deploy.md': ['needs an app below a sub-path: test/templates'],
  'docs/endpoints.md': [/^$/],
  'docs/errors.md': [/^not_found .*\n404 .*@me\/missing/, /\w/],
  'docs/frameworks.md': [/loaded/, /^$/, /^$/, WORKER, /tool: It is 12/, /^$/, 'never ends', /^$/],
  'docs/images.md': [/^$/, /click.*x.*y/],
  'docs/isolation.md': [RELOAD],
  'docs/lifetime.md': [/^$/],
  'docs/mlc.md': [HUB],
  'docs/offline.md': [/^$/],
  'docs/own-models.md': [FILE, /^$/],
  'docs/pipelines.md': [PIPELINES, PIPELINES],
  'docs/prompt-api.md': [CLICK, /^$/, /\w/],
  'docs/predictors.md': [/^seven\n.*data.*shape/, FILE, /^$/, FILE, /onnx|wasm/, /^$/],
  'docs/sdks.md': [/\w/, /type.*text/, /^kept: \w/, /data: .*stopped: AbortError$/s],
  'docs/server.md': ['never ends'],
  'docs/service-worker.md': [WORKER],
  'docs/start.md': [TOOL, /^$/, /browser|inorigin/],
  'docs/storage.md': [FILE],
  'docs/testing.md': ['needs a template: test/templates'],
  'docs/tasks.md': [FILE, FILE, FILE, FILE, FILE],
  'docs/tools.md': [
    /^weather .*city.*\n.*\w/s,
    /^start_timer .*minutes.*type.*text/s,
    /^(?:good|bad) [1-5]$/,
    /^\d\d:\d\d$/,
  ],
  'docs/upstream.md': [/^$/],
  'docs/vite.md': [TOOL, /^$/, TOOL, 'needs a script of the app: test/templates', WORKER],
}

const BLOCKS = listPages().flatMap((page) =>
  listBlocks(page)
    .filter(isModule)
    .map((block, index) => ({ ...block, outcome: OUTCOMES[page]?.[index] })),
)

const RUN = BLOCKS.filter((block) => block.outcome instanceof RegExp)

let folder: DocsFolder
let site: Site
const names = new Map<string, string>()

beforeAll(async () => {
  folder = writeModules(RUN)
  const entries = folder.modules.map(({ block, file }) => {
    const name = basename(file).replace(/\.\w+$/, '')
    names.set(`${block.page}:${block.line}`, name)
    return [name, file] as const
  })
  const scripts = await bundleModules(Object.fromEntries(entries))
  site = await openSite({ pages: scripts })
  // This tab hosts the models for those that follow, so that each is loaded once.
  await serveIn(await site.open())
})

afterAll(async () => {
  await site?.close()
  folder?.remove()
})

/** Runs a block in a new tab, and resolves with the lines that it printed. */
async function run(name: string): Promise<string> {
  const page = await site.open()
  const failures: string[] = []
  page.on('pageerror', (error) => failures.push(error.message))
  const printed = await page.evaluate<string>(toProgram(`/docs-code/${name}.js`))
  await page.close()
  expect(failures).toEqual([])
  return printed
}

/** Returns a program as a text: Vitest would replace `import()` in a function. */
const toProgram = (url: string): string => String.raw`(async () => {
  const lines = []
  const show = (value) => (typeof value === 'string' ? value : JSON.stringify(value))
  console.log = (...values) => void lines.push(values.map(show).join(' '))
  await import(${JSON.stringify(url)})
  return lines.join('\n')
})()`

test('every block has an outcome or a reason', () => {
  const missing = BLOCKS.filter(({ outcome }) => outcome === undefined)
  expect(missing.map(({ page, line }) => `${page}:${line}`)).toEqual([])
  const counts = Object.entries(OUTCOMES).map(([page, outcomes]) => [page, outcomes.length])
  const found = counts.map(([page]) => [page, BLOCKS.filter((one) => one.page === page).length])
  expect(counts).toEqual(found)
})

test('the policy of the page on deployment is enough', { timeout: 300_000 }, async () => {
  const [policy] = listBlocks('docs/deploy.md').filter(({ language }) => language === 'csp')
  const guarded = await openSite({
    headers: { 'content-security-policy': policy?.code.trim() ?? '' },
    pages: {
      '/guarded.html':
        '<!doctype html><title>guarded</title><script src="guarded.js" type="module"></script>',
      '/guarded.js': `import { serve } from './inorigin/index.js'\nglobalThis.serve = serve\n`,
    },
  })
  try {
    const page = await guarded.open('/guarded.html')
    await serveIn(page, { device: 'wasm' })
    const load = `server.models.load('@inorigin/guide').then(() => 'loaded')`
    expect(await page.evaluate(load)).toBe('loaded')
    const refused = `fetch('https://elsewhere.test/').then(() => 'sent', () => 'refused')`
    expect(await page.evaluate(refused)).toBe('refused')
  } finally {
    await guarded.close()
  }
})

test.for(RUN)(
  '$page:$line',
  { tags: ['slow'], timeout: 300_000 },
  async ({ page, line, outcome }) => {
    const printed = await run(names.get(`${page}:${line}`) ?? '')
    expect(printed).toMatch(outcome as RegExp)
  },
)

test('every module compiles against the entry points', async () => {
  const all = writeModules(listPages().flatMap(listBlocks))
  try {
    expect(all.modules.length).toBeGreaterThan(40)
    expect(await compile(all.path)).toEqual([])
  } finally {
    all.remove()
  }
})

const OPTIONS = {
  allowJs: true,
  checkJs: true,
  jsx: 'react-jsx',
  types: ['node', 'vite/client'],
  // A block may show a value that the reader uses.
  noUnusedLocals: false,
  noUnusedParameters: false,
  // Most apps allow `outputs.digit` of a record, and nothing is emitted.
  noPropertyAccessFromIndexSignature: false,
  rewriteRelativeImportExtensions: false,
}

/** Resolves with the errors of the compiler, by page and line. */
async function compile(path: string): Promise<string[]> {
  const config = { extends: join(ROOT, 'test/tsconfig.json'), compilerOptions: OPTIONS }
  const files = { include: ['pages'], exclude: [] }
  writeFileSync(join(path, 'tsconfig.json'), JSON.stringify({ ...config, ...files }))
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
  const args = [tsc, '-p', path, '--pretty', 'false']
  const { stdout } = await promisify(execFile)(process.execPath, args).catch(
    (failed: { stdout: string }) => failed,
  )
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) =>
      line.replace(
        /^.*\/pages\/(.*)~\d+\.\w+\((\d+),/,
        (_all, page: string, at: string) => `${page.replaceAll('~', '/')}.md:${at} (`,
      ),
    )
}
