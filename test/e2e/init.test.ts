/** The command, as it is built, in apps of temporary folders. */
import { createHash } from 'node:crypto'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  watch,
  writeFileSync,
} from 'node:fs'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { FileList } from '../../src/types/index.ts'
import { licenseSections } from '../support/licenses.ts'

const ROOT = join(import.meta.dirname, '../..')
const CLI = join(ROOT, 'dist/cli.js')

let app: string

beforeEach(() => {
  app = mkdtempSync(join(tmpdir(), 'inorigin-init-'))
  put('package.json', '{\n    "name": "app"\n}\n')
})

afterEach(() => rmSync(app, { recursive: true, force: true }))

function inorigin(...args: string[]): { code: number | null; out: string; err: string } {
  return run(CLI, args)
}

function run(cli: string, args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [cli, ...args], {
    cwd: app,
    encoding: 'utf8',
  })
  return { code: status, out: stdout, err: stderr }
}

function put(path: string, text: string): void {
  mkdirSync(join(app, path, '..'), { recursive: true })
  writeFileSync(join(app, path), text)
}

const get = (path: string): string => readFileSync(join(app, path), 'utf8')
const has = (path: string): boolean => existsSync(join(app, path))
const tags = (): string[] => {
  const { entries } = JSON.parse(get('public/inorigin/models/catalog.json'))
  return entries.map((entry: { tag: string }) => entry.tag)
}

test('fills a folder that is not there yet and remembers it', () => {
  const { code, out, err } = inorigin('init', 'public')
  expect({ code, err }).toEqual({ code: 0, err: '' })
  expect(out).toMatch(/wrote public\/sw\.js and public\/inorigin\/, \d+ files, [\d.]+ MB/)

  for (const name of ['index.js', 'worker.js', 'model-worker.js']) {
    expect(get(`public/inorigin/${name}`)).toBe(readFileSync(join(ROOT, 'dist', name), 'utf8'))
  }
  expect(get('public/sw.js')).toBe(readFileSync(join(ROOT, 'dist/sw.js'), 'utf8'))
  expect(readdirSync(join(app, 'public/inorigin/ort')).toSorted()).toEqual([
    'ort-wasm-simd-threaded.asyncify.0.wasm',
    'ort-wasm-simd-threaded.asyncify.1.wasm',
    'ort-wasm-simd-threaded.asyncify.mjs',
    'ort-wasm-simd-threaded.jspi.mjs',
    'ort-wasm-simd-threaded.jspi.wasm',
    'ort-wasm-simd-threaded.mjs',
    'ort-wasm-simd-threaded.wasm',
  ])
  expect(tags()).toContain('@inorigin/guide')
  const remembered =
    '{\n    "name": "app",\n    "inorigin": {\n        "publicDir": "public"\n    }\n}\n'
  expect(get('package.json')).toBe(remembered)
})

test('writes no file over 25 MB, and the parts of a split one are its bytes', () => {
  inorigin('init', 'public', '--mlc')
  const { files } = JSON.parse(get('public/inorigin/files.json')) as FileList
  const read = (name: string) => readFileSync(join(app, 'public/inorigin', name))
  const large = files.filter(({ name }) => read(name).length > 25_000_000)
  expect(large).toEqual([])
  const whole = 'ort-wasm-simd-threaded.asyncify.wasm'
  const parts = [0, 1].map((index) => read(`ort/${whole.replace(/wasm$/, `${index}.wasm`)}`))
  const installed = readFileSync(join(ROOT, 'node_modules/onnxruntime-web/dist', whole))
  expect(Buffer.concat(parts).equals(installed)).toBe(true)
})

test('lists the digests of what it wrote, and what is kept before it is used', () => {
  inorigin('init', 'public', '--mlc')
  const { files } = JSON.parse(get('public/inorigin/files.json')) as FileList
  for (const { name, sha256 } of files) {
    const content = readFileSync(join(app, 'public/inorigin', name))
    expect(createHash('sha256').update(content).digest('hex'), name).toBe(sha256)
  }
  const isFirst = ({ name }: { name: string }) =>
    name === 'models/catalog.json' || (name.endsWith('.js') && !name.startsWith('chunks/mlc-'))
  expect(files.filter(({ precache }) => precache)).toEqual(files.filter(isFirst))
})

test('lays every file of the catalog beside it', () => {
  inorigin('init', 'public')
  const { entries } = JSON.parse(get('public/inorigin/models/catalog.json'))
  const resources = entries.flatMap((entry: { implementations?: { resources: unknown[] }[] }) =>
    (entry.implementations ?? []).flatMap((one) => one.resources),
  )
  expect(resources.length).toBeGreaterThan(0)
  for (const { url, bytes } of resources) {
    expect(readFileSync(join(app, 'public/inorigin/models', url)).length, url).toBe(bytes)
  }
  expect(get('public/inorigin/models/embed/NOTICE.md')).toContain(
    'WordNet 3.0 Copyright 2006 by Princeton University',
  )
})

/** Packages that files of a folder import as code. */
function importedIn(folder: string): string[] {
  const sources = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.ts'),
  )
  return sources.flatMap((name) => {
    const text = readFileSync(join(ROOT, folder, name), 'utf8')
    const found = text.matchAll(
      /^(?:import|export) (?!type )[\w\s{},*]*from '((?:@[\w-]+\/)?[a-z][\w-]*)|(?<!\.)import\('((?:@[\w-]+\/)?[a-z][\w-]*)/gm,
    )
    return Array.from(found, ([, one, other]) => one ?? other ?? '')
  })
}

test('copies a license for every part of what it copies', () => {
  inorigin('init', 'public', '--mlc')
  const sections = licenseSections(get('public/inorigin/licenses.md'))
  expect(sections.filter(([, text]) => text.length < 100)).toEqual([])
  const named = new Set(sections.map(([name]) => name))
  const { files } = JSON.parse(get('public/inorigin/files.json')) as FileList
  const parts = files.map(({ name }) => {
    if (name.startsWith('ort/')) return 'onnxruntime-web'
    return name.startsWith('chunks/mlc-') ? '@mlc-ai/web-llm' : 'inorigin'
  })
  // The plugin uses the Vite of the app, and the hooks its React.
  const imported = [...importedIn('src'), ...importedIn('sw')].filter(
    (name) => !['inorigin', 'node', 'react', 'vite'].includes(name),
  )
  expect(new Set(imported).size).toBeGreaterThan(7)
  expect([...parts, ...imported].filter((name) => !named.has(name))).toEqual([])
  expect(get('public/sw.js').split('\n', 1)[0]).toContain('licenses: inorigin/licenses.md')
})

test('without a folder, refreshes the remembered one', () => {
  inorigin('init', 'public')
  put('public/inorigin/worker.js', 'old')
  expect(inorigin('init').code).toBe(0)
  expect(get('public/inorigin/worker.js')).not.toBe('old')
})

test('an app that owns its service worker gets everything else, now and at a refresh', () => {
  put('public/sw.js', '// my own\n')
  const { code, out } = inorigin('init', 'public', '--own-sw')
  expect(code).toBe(0)
  expect(out).toContain("serve({ worker: '/<your worker>' })")
  expect(get('public/sw.js')).toBe('// my own\n')
  expect(has('public/inorigin/worker.js')).toBe(true)
  rmSync(join(app, 'public/inorigin/worker.js'))
  expect(inorigin('init').code).toBe(0)
  expect(has('public/inorigin/worker.js')).toBe(true)
  expect(get('public/sw.js')).toBe('// my own\n')
})

test('deletes what an earlier version wrote, and nothing else', { tags: ['slow'] }, () => {
  inorigin('init', 'public')
  const list = JSON.parse(get('public/inorigin/files.json'))
  list.files.push({ name: 'chunks/old/gone.js' }, { name: '../kept.js' })
  put('public/inorigin/files.json', JSON.stringify(list))
  put('public/inorigin/chunks/old/gone.js', '')
  put('public/inorigin/models/mine.onnx', 'mine')
  put('public/kept.js', 'kept')
  expect(inorigin('init').out).toContain('Removed 1 file')
  expect(has('public/inorigin/chunks/old')).toBe(false)
  expect(get('public/inorigin/models/mine.onnx')).toBe('mine')
  expect(get('public/kept.js')).toBe('kept')
})

test('leaves a foreign service worker alone, and takes another name for its own', () => {
  put('public/sw.js', '// mine\n')
  const refused = inorigin('init', 'public')
  expect(refused.code).toBe(1)
  expect(refused.err).toContain('--sw inorigin-sw.js')
  expect(get('public/sw.js')).toBe('// mine\n')
  expect(has('public/inorigin')).toBe(false)

  const { code, out } = inorigin('init', 'public', '--sw', 'inorigin-sw.js')
  expect(code).toBe(0)
  expect(out).toContain("serve({ worker: '/inorigin-sw.js' })")
  expect(get('public/sw.js')).toBe('// mine\n')
  rmSync(join(app, 'public/inorigin-sw.js'))
  inorigin('init')
  expect(has('public/inorigin-sw.js')).toBe(true)
})

test('--no-guide leaves the language models out until --guide', { tags: ['slow'] }, () => {
  const chats = ['guide', 'glance']
  const written = (): string[] => chats.filter((name) => has(`public/inorigin/models/${name}`))
  inorigin('init', 'public')
  expect(written()).toEqual(chats)
  inorigin('init', '--no-guide')
  expect(written()).toEqual([])
  for (const name of chats) expect(tags()).not.toContain(`@inorigin/${name}`)
  expect(tags().length).toBeGreaterThan(0)
  inorigin('init')
  expect(written()).toEqual([])
  inorigin('init', '--guide')
  expect(written()).toEqual(chats)
})

test('--no-webgpu leaves the runtimes for WebGPU out until --webgpu', { tags: ['slow'] }, () => {
  const files = (): string[] =>
    (JSON.parse(get('public/inorigin/files.json')) as FileList).files.map(({ name }) => name)
  const gpuFiles = (): string[] => files().filter((name) => /jspi|asyncify|ort\.webgpu/.test(name))
  const devices = () => JSON.parse(get('public/inorigin/models/catalog.json')).devices
  inorigin('init', 'public')
  // Two builds, one of them in two parts, and a chunk that loads each.
  expect(gpuFiles()).toHaveLength(7)
  expect(devices()).toBeUndefined()
  inorigin('init', '--no-webgpu')
  expect(gpuFiles()).toEqual([])
  expect(readdirSync(join(app, 'public/inorigin/ort')).toSorted()).toEqual([
    'ort-wasm-simd-threaded.mjs',
    'ort-wasm-simd-threaded.wasm',
  ])
  expect(devices()).toEqual(['wasm'])
  inorigin('init')
  expect(gpuFiles()).toEqual([])
  const both = inorigin('init', '--mlc')
  expect(both.code).toBe(2)
  expect(both.err).toContain('WebLLM runs on WebGPU alone: leave --mlc or --no-webgpu out')
  inorigin('init', '--webgpu')
  expect(gpuFiles()).toHaveLength(7)
})

test('--mlc adds the engine for models compiled by MLC until --no-mlc', { tags: ['slow'] }, () => {
  const engines = () =>
    readdirSync(join(app, 'public/inorigin/chunks')).filter((name) => name.startsWith('mlc-'))
  inorigin('init', 'public')
  expect(engines()).toEqual([])
  inorigin('init', '--mlc')
  expect(engines()).toHaveLength(1)
  inorigin('init')
  expect(engines()).toHaveLength(1)
  inorigin('init', '--no-mlc')
  expect(engines()).toEqual([])
})

test(
  'works in a folder without package.json, and says what it cannot do',
  { tags: ['slow'] },
  () => {
    rmSync(join(app, 'package.json'))
    const { code, out } = inorigin('init', 'public')
    expect(code).toBe(0)
    expect(out).toContain('no package.json')
  },
)

test('says how it is used, the whole and each command', () => {
  const help = execFileSync(process.execPath, [CLI, '--help'], { encoding: 'utf8' })
  expect(help).toContain('Usage: inorigin init')
  expect(inorigin('help').out).toBe(help)
  for (const command of ['init', 'add', 'types', 'catalog refresh', 'create', 'bridge']) {
    expect(help).toContain(`inorigin ${command} `)
    const { code, out, err } = inorigin(...command.split(' '), '--help')
    expect([code, err]).toEqual([0, ''])
    expect(out).toMatch(new RegExp(`^Usage: inorigin ${command} `))
    expect(inorigin('help', ...command.split(' ')).out).toBe(out)
    expect(out.split('\n').every((line) => line.length <= 110)).toBe(true)
  }
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  expect(inorigin('--version').out).toBe(`${version}\n`)
})

test('a cloned package.json writes nothing outside of its folder, unless it is named', () => {
  const outside = '../inorigin-outside'
  put('package.json', JSON.stringify({ name: 'app', inorigin: { publicDir: outside } }))
  const { code, err } = inorigin('init')
  expect(code).toBe(1)
  expect(err).toContain('is outside of this folder: ../inorigin-outside')
  expect(existsSync(join(app, outside))).toBe(false)
})

test.each([
  { args: [], says: 'Usage: inorigin init [folder] [options]' },
  { args: ['add'], says: 'needs model.onnx|folder. Usage: inorigin add <model.onnx|folder>' },
  { args: ['init', 'one', 'two'], says: 'inorigin init does not expect two. Usage: ' },
  { args: ['initt'], says: 'initt is not a command. Did you mean init?' },
  {
    args: ['xyzzyx'],
    says: 'xyzzyx is not a command. Commands: init, add, types, catalog refresh',
  },
  { args: ['catalog', 'refrsh'], says: 'Did you mean catalog refresh?' },
  { args: ['catalog'], says: 'catalog is not a command.' },
  { args: ['creat', '--help'], says: 'creat is not a command. Did you mean create?' },
  { args: ['help', 'creat'], says: 'creat is not a command. Did you mean create?' },
  { args: ['catalog', 'refresh'], says: 'inorigin catalog refresh needs file.' },
  {
    args: ['init', '--no-guid'],
    says: 'inorigin init takes no --no-guid. Did you mean --no-guide?',
  },
  { args: ['add', 'x.onnx', '--tga=@me/x'], says: 'takes no --tga. Did you mean --tag?' },
  {
    args: ['create', 'my-app', '--template', 'raect'],
    says: '--template takes vanilla, react, static, not raect. Did you mean react?',
  },
  { args: ['init', 'public', '--sw'], says: "'--sw <value>' argument missing" },
  { args: ['init'], says: 'inorigin init public' },
  { args: ['init', 'public', '--nope'], says: '--nope' },
  { args: ['init', 'public', '--sw', '../sw.js'], says: '../sw.js' },
  { args: ['init', 'public', '--sw', 'a\nb.js'], says: 'takes the name of a script' },
])('exits with 2 when not understood: $args', ({ args, says }) => {
  const { code, err } = inorigin(...args)
  expect(code).toBe(2)
  expect(err).toContain(says)
})

test('says which folder cannot be written', () => {
  put('public', 'a file')
  const { code, err } = inorigin('init', 'public')
  expect(code).toBe(1)
  expect(err).toMatch(/^inorigin: .*public.* cannot be (read|written)/)
})

test('a folder below a missing one is neither created nor remembered', () => {
  const { code, err } = inorigin('init', 'nosuch/deep')
  expect([code, err]).toEqual([1, expect.stringContaining('There is no folder nosuch.')])
  expect(has('nosuch')).toBe(false)
  expect(get('package.json')).not.toContain('nosuch')
})

test('create writes into an empty folder only, whose name npm takes', () => {
  put('full/mine.txt', 'mine')
  const refusals = ['full', 'package.json', 'My App'].map((name) => inorigin('create', name))
  expect(refusals.map(({ code, err }) => [code, err])).toEqual([
    [1, 'inorigin: full has files already. Name a new folder.\n'],
    [1, 'inorigin: package.json is a file. Name a new folder.\n'],
    [1, expect.stringContaining('My App cannot be the name of a package. Use lower-case letters')],
  ])
  expect([readdirSync(join(app, 'full')), has('My App')]).toEqual([['mine.txt'], false])
  mkdirSync(join(app, 'empty'))
  expect(inorigin('create', 'empty').code).toBe(0)
  expect([has('empty/.gitignore'), has('empty/_gitignore')]).toEqual([true, false])
  expect(get('empty/package.json')).toContain('"name": "empty"')
})

test('create takes the folder it runs in, and one that is a new repository', () => {
  mkdirSync(join(app, 'cloned/.git'), { recursive: true })
  expect(inorigin('create', 'cloned').out).toContain('\n  cd cloned\n  npm install\n')
  app = join(app, 'here')
  mkdirSync(app)
  expect(inorigin('create', '.').out).toMatch(/Start it:\n\n {2}npm install\n/)
  expect(get('package.json')).toContain('"name": "here"')
  app = join(app, '..')
})

test('another name of the script removes the former one, unless it is the app’s own', () => {
  inorigin('init', 'public', '--no-guide')
  expect(inorigin('init', '--sw', 'worker.js').out).toContain('Removed 1 file')
  expect([has('public/sw.js'), has('public/worker.js')]).toEqual([false, true])
  put('public/worker.js', '// mine')
  expect(inorigin('init', '--sw', 'other.js').code).toBe(0)
  expect([get('public/worker.js'), has('public/other.js')]).toEqual(['// mine', true])
  inorigin('init', '--own-sw')
  expect(has('public/other.js')).toBe(false)
})

test('a catalog that does not exist is named', () => {
  const { code, err } = inorigin('types', 'nosuch.json')
  expect([code, err]).toEqual([
    1,
    'inorigin: There is no file nosuch.json. Check the path of the catalog.\n',
  ])
})

test('says when package.json is broken, and leaves it as it is', () => {
  put('package.json', '{')
  const { code, err } = inorigin('init', 'public')
  expect(code).toBe(1)
  expect(err).toContain('package.json is not JSON')
  expect(get('package.json')).toBe('{')
})

test('an interrupt leaves no half of a file', async () => {
  mkdirSync(join(app, 'public/inorigin/ort'), { recursive: true })
  const watcher = watch(join(app, 'public/inorigin/ort'))
  const begun = once(watcher, 'change')
  const child = spawn(process.execPath, [CLI, 'init', 'public'], { cwd: app })
  const ended = once(child, 'exit')
  await begun
  watcher.close()
  child.kill('SIGINT')
  expect(await ended).toEqual([0, null])
  const { files } = JSON.parse(get('public/inorigin/files.json')) as FileList
  const found = readdirSync(join(app, 'public'), {
    recursive: true,
    encoding: 'utf8',
    withFileTypes: true,
  })
  expect(found.filter((one) => one.isFile())).toHaveLength(files.length + 2)
  expect(has('public/sw.js')).toBe(true)
})

test('refuses a package.json that is a link before it writes anything', () => {
  rmSync(join(app, 'package.json'))
  put('real.json', '{}')
  symlinkSync('real.json', join(app, 'package.json'))
  const { code, err } = inorigin('init', 'public')
  expect([code, err]).toEqual([1, expect.stringContaining('package.json is a link to real.json')])
  expect(has('public')).toBe(false)
  expect(get('real.json')).toBe('{}')
})

test.each([
  { args: ['init', 'pub\u001b]0;title\u0007lic\u202e'], code: 0 },
  { args: ['init', 'package.json/\u009b2J'], code: 1 },
  { args: ['types', '\u001b[2J\n.json'], code: 1 },
  { args: ['add', '\u001b[2J', '--tag', '\u001b[1A', '--public', 'public'], code: 1 },
  { args: ['init', '--\u001b[2J'], code: 2 },
])('escapes control characters of what it prints: $args', ({ args, code }) => {
  const result = inorigin(...args)
  expect(result.code).toBe(code)
  expect(result.out + result.err).toMatch(/\\u00(1b|9b)/)
  // oxlint-disable-next-line no-control-regex -- They are what must not be there.
  expect(result.out + result.err).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
})

test('says what is missing of an installation', () => {
  for (const name of ['dist', 'package.json']) {
    cpSync(join(ROOT, name), join(app, 'package', name), { recursive: true })
  }
  const alone = run(join(app, 'package/dist/cli.js'), ['init', 'public'])
  expect(alone.code).toBe(1)
  expect(alone.err).toContain('onnxruntime-web, which inorigin depends on, is not installed')
})
