/** The command, as it is built, in apps of temporary folders. */
import { createHash } from 'node:crypto'
import { spawn } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  watch,
} from 'node:fs'
import { once } from 'node:events'
import { join, resolve } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { FileList } from '../../src/types/index.ts'
import { CLI, CliApp, ROOT, type Outcome } from '../support/cli-app.ts'
import { licenseSections } from '../support/licenses.ts'

const RUNTIMES = [
  'ort-wasm-simd-threaded.asyncify.0.wasm',
  'ort-wasm-simd-threaded.asyncify.1.wasm',
  'ort-wasm-simd-threaded.asyncify.mjs',
  'ort-wasm-simd-threaded.jspi.mjs',
  'ort-wasm-simd-threaded.jspi.wasm',
  'ort-wasm-simd-threaded.mjs',
  'ort-wasm-simd-threaded.wasm',
]

const listRuntimes = (app: CliApp) => readdirSync(app.path('public/inorigin/ort')).toSorted()

const readJson = (app: CliApp, path: string) => JSON.parse(app.get(`public/inorigin/${path}`))

const tagsOf = (app: CliApp): string[] =>
  readJson(app, 'models/catalog.json').entries.map((entry: { tag: string }) => entry.tag)

const filesOf = (app: CliApp) => (readJson(app, 'files.json') as FileList).files

describe('init --mlc', () => {
  const app = new CliApp()
  const read = (name: string) => readFileSync(app.path(`public/inorigin/${name}`))
  let outcome: Outcome

  beforeAll(() => {
    outcome = app.inorigin('init', 'public', '--mlc')
  })

  afterAll(() => app.remove())

  test('fills a folder that is not there yet and remembers it', { tags: ['everyday'] }, () => {
    expect(outcome).toMatchObject({ code: 0, err: '' })
    expect(outcome.out).toMatch(/wrote public\/sw\.js and public\/inorigin\/, \d+ files, [\d.]+ MB/)
    for (const name of ['index.js', 'worker.js', 'model-worker.js', 'llguidance.wasm']) {
      expect(read(name).equals(readFileSync(join(ROOT, 'dist', name)))).toBe(true)
    }
    expect(app.get('public/sw.js')).toBe(readFileSync(join(ROOT, 'dist/sw.js'), 'utf8'))
    expect(listRuntimes(app)).toEqual(RUNTIMES)
    expect(tagsOf(app)).toContain('@inorigin/guide')
    const remembered =
      '"inorigin": {\n        "publicDir": "public",\n        "mlc": true\n    }\n}\n'
    expect(app.get('package.json')).toBe(`{\n    "name": "app",\n    ${remembered}`)
  })

  test('writes no file over 25 MB, and the parts of a split one are its bytes', () => {
    const large = filesOf(app).filter(({ name }) => read(name).length > 25_000_000)
    expect(large).toEqual([])
    const whole = 'ort-wasm-simd-threaded.asyncify.wasm'
    const parts = [0, 1].map((index) => read(`ort/${whole.replace(/wasm$/, `${index}.wasm`)}`))
    const installed = readFileSync(join(ROOT, 'node_modules/onnxruntime-web/dist', whole))
    expect(Buffer.concat(parts).equals(installed)).toBe(true)
  })

  test('lists the digests of what it wrote, and what is kept before it is used', () => {
    const files = filesOf(app)
    for (const { name, sha256 } of files) {
      expect(createHash('sha256').update(read(name)).digest('hex'), name).toBe(sha256)
    }
    const isFirst = ({ name }: { name: string }) =>
      ['models/catalog.json', 'llguidance.wasm'].includes(name) ||
      (name.endsWith('.js') && !name.startsWith('chunks/mlc-'))
    expect(files.filter(({ precache }) => precache)).toEqual(files.filter(isFirst))
  })

  test('lays every file of the catalog beside it', () => {
    const { entries } = readJson(app, 'models/catalog.json')
    const resources = entries.flatMap((entry: { implementations?: { resources: unknown[] }[] }) =>
      (entry.implementations ?? []).flatMap((one) => one.resources),
    )
    expect(resources.length).toBeGreaterThan(0)
    for (const { url, bytes } of resources) expect(read(`models/${url}`).length, url).toBe(bytes)
    expect(read('models/embed/NOTICE.md').toString()).toContain(
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
    const sections = licenseSections(read('licenses.md').toString())
    expect(sections.filter(([, text]) => text.length < 100)).toEqual([])
    const named = new Set(sections.map(([name]) => name))
    const parts = filesOf(app).map(({ name }) => {
      if (name.startsWith('ort/')) return 'onnxruntime-web'
      if (name === 'llguidance.wasm') return 'llguidance'
      return name.startsWith('chunks/mlc-') ? '@mlc-ai/web-llm' : 'inorigin'
    })
    // The plugin uses the Vite of the app, and the hooks its React.
    const imported = [...importedIn('src'), ...importedIn('sw')].filter(
      (name) => !['inorigin', 'node', 'react', 'vite'].includes(name),
    )
    expect(new Set(imported).size).toBeGreaterThan(7)
    expect([...parts, ...imported].filter((name) => !named.has(name))).toEqual([])
    expect(app.get('public/sw.js').split('\n', 1)[0]).toContain('licenses: inorigin/licenses.md')
  })

  test('keeps the engine for models compiled by MLC until --no-mlc', { tags: ['slow'] }, () => {
    const engines = () =>
      readdirSync(app.path('public/inorigin/chunks')).filter((name) => name.startsWith('mlc-'))
    expect(engines()).toHaveLength(1)
    app.inorigin('init')
    expect(engines()).toHaveLength(1)
    app.inorigin('init', '--no-mlc')
    expect(engines()).toEqual([])
  })
})

let app: CliApp

beforeEach(() => {
  app = new CliApp()
})

afterEach(() => app.remove())

const inorigin = (...args: string[]) => app.inorigin(...args)

test('without a folder, refreshes the remembered one', () => {
  inorigin('init', 'public', '--no-guide')
  app.put('public/inorigin/worker.js', 'old')
  expect(inorigin('init').code).toBe(0)
  expect(app.get('public/inorigin/worker.js')).not.toBe('old')
})

test('an app that owns its service worker gets everything else, now and at a refresh', () => {
  app.put('public/sw.js', '// my own\n')
  const { code, out } = inorigin('init', 'public', '--own-sw', '--no-guide')
  expect(code).toBe(0)
  expect(out).toContain("serve({ worker: '/<your worker>' })")
  rmSync(app.path('public/inorigin/worker.js'))
  expect(inorigin('init').code).toBe(0)
  expect(app.has('public/inorigin/worker.js')).toBe(true)
  expect(app.get('public/sw.js')).toBe('// my own\n')
})

test('deletes what an earlier version wrote, and nothing else', { tags: ['slow'] }, () => {
  inorigin('init', 'public')
  const list = readJson(app, 'files.json')
  list.files.push({ name: 'chunks/old/gone.js' }, { name: '../kept.js' })
  app.put('public/inorigin/files.json', JSON.stringify(list))
  app.put('public/inorigin/chunks/old/gone.js', '')
  app.put('public/inorigin/models/mine.onnx', 'mine')
  app.put('public/kept.js', 'kept')
  expect(inorigin('init').out).toContain('Removed 1 file')
  expect(app.has('public/inorigin/chunks/old')).toBe(false)
  expect(app.get('public/inorigin/models/mine.onnx')).toBe('mine')
  expect(app.get('public/kept.js')).toBe('kept')
})

test('leaves a foreign service worker alone, and takes another name for its own', () => {
  app.put('public/sw.js', '// mine\n')
  const refused = inorigin('init', 'public')
  expect(refused.code).toBe(1)
  expect(refused.err).toContain('--sw inorigin-sw.js')
  expect(app.has('public/inorigin')).toBe(false)

  const { code, out } = inorigin('init', 'public', '--sw', 'inorigin-sw.js', '--no-guide')
  expect(code).toBe(0)
  expect(out).toContain("serve({ worker: '/inorigin-sw.js' })")
  expect(app.get('public/sw.js')).toBe('// mine\n')
  rmSync(app.path('public/inorigin-sw.js'))
  inorigin('init')
  expect(app.has('public/inorigin-sw.js')).toBe(true)

  // Another name removes the former script, unless it is the app's own.
  expect(inorigin('init', '--sw', 'worker.js').out).toContain('Removed 1 file')
  expect(['inorigin-sw.js', 'worker.js'].map((name) => app.has(`public/${name}`))).toEqual([
    false,
    true,
  ])
  app.put('public/worker.js', '// mine')
  expect(inorigin('init', '--sw', 'other.js').code).toBe(0)
  expect([app.get('public/worker.js'), app.has('public/other.js')]).toEqual(['// mine', true])
  inorigin('init', '--own-sw')
  expect(app.has('public/other.js')).toBe(false)
})

test('--no-guide leaves the language models out until --guide', { tags: ['slow'] }, () => {
  const chats = ['guide', 'glance']
  const written = () => chats.filter((name) => app.has(`public/inorigin/models/${name}`))
  inorigin('init', 'public')
  expect(written()).toEqual(chats)
  inorigin('init', '--no-guide')
  expect(written()).toEqual([])
  for (const name of chats) expect(tagsOf(app)).not.toContain(`@inorigin/${name}`)
  expect(tagsOf(app).length).toBeGreaterThan(0)
  inorigin('init')
  expect(written()).toEqual([])
  inorigin('init', '--guide')
  expect(written()).toEqual(chats)
})

test('--no-webgpu leaves the runtimes for WebGPU out until --webgpu', { tags: ['slow'] }, () => {
  const gpuFiles = () =>
    filesOf(app).filter(({ name }) => /jspi|asyncify|ort\.webgpu/.test(name)).length
  const devices = () => readJson(app, 'models/catalog.json').devices
  inorigin('init', 'public')
  // Two builds, one of them in two parts, and a chunk that loads each.
  expect([gpuFiles(), devices()]).toEqual([7, undefined])
  inorigin('init', '--no-webgpu')
  expect([gpuFiles(), devices()]).toEqual([0, ['wasm']])
  expect(listRuntimes(app)).toEqual(RUNTIMES.slice(-2))
  inorigin('init')
  expect(gpuFiles()).toBe(0)
  const both = inorigin('init', '--mlc')
  expect(both.code).toBe(2)
  expect(both.err).toContain('WebLLM runs on WebGPU alone: leave --mlc or --no-webgpu out')
  inorigin('init', '--webgpu')
  expect(gpuFiles()).toBe(7)
})

test(
  'works in a folder without package.json, and says what it cannot do',
  { tags: ['slow'] },
  () => {
    rmSync(app.path('package.json'))
    const { code, out } = inorigin('init', 'public')
    expect(code).toBe(0)
    expect(out).toContain('no package.json')
  },
)

test('a new app asks the model that is named, and else the guide', () => {
  for (const template of ['vanilla', 'react', 'static']) {
    const find = (folder: string): string | undefined =>
      readdirSync(app.path(folder), { recursive: true, encoding: 'utf8' })
        .filter((name) => /\.jsx?$/.test(name))
        .map((name) => /const MODEL = '(.*)'/.exec(app.get(`${folder}/${name}`))?.[1])
        .find((model) => model !== undefined)
    inorigin('create', `${template}-a`, '--template', template)
    expect(find(`${template}-a`)).toBe('@inorigin/guide')
    inorigin('create', `${template}-b`, '--template', template, '--model', '@a/b')
    expect(find(`${template}-b`)).toBe('@a/b')
  }
  const { code, err } = inorigin('create', 'c', '--model', 'guide')
  expect(code).not.toBe(0)
  expect(err).toContain('--model takes a tag such as @huggingfacetb/smollm2-135m, not guide.')
})

test('says how it is used, the whole and each command', () => {
  const help = inorigin('--help').out
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
  expect(inorigin('catalog', '--help').out).toBe(inorigin('catalog', 'refresh', '--help').out)
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  expect(inorigin('--version').out).toBe(`${version}\n`)
})

describe('refuses, and writes nothing,', () => {
  test.each<[string, () => void, string[], string | RegExp, string]>([
    [
      'a folder outside that a cloned package.json names',
      () =>
        app.put('package.json', JSON.stringify({ inorigin: { publicDir: '../inorigin-outside' } })),
      [],
      'is outside of this folder: ../inorigin-outside',
      '../inorigin-outside',
    ],
    [
      'a folder below a missing one',
      () => undefined,
      ['nosuch/deep'],
      'There is no folder nosuch.',
      'nosuch',
    ],
    [
      'a package.json that is broken',
      () => app.put('package.json', '{'),
      ['public'],
      'package.json is not JSON',
      'public/inorigin',
    ],
    [
      'a package.json that is a link',
      () => {
        app.put('real.json', '{}')
        rmSync(app.path('package.json'))
        symlinkSync('real.json', app.path('package.json'))
      },
      ['public'],
      'package.json is a link to real.json',
      'public',
    ],
    [
      'a folder that is a file',
      () => app.put('public', 'a file'),
      ['public'],
      /public.* cannot be (read|written)/,
      'public/inorigin',
    ],
  ])('%s', (_what, prepare, args, says, absent) => {
    prepare()
    const before = app.get('package.json')
    const { code, err } = inorigin('init', ...args)
    expect([code, err]).toEqual([1, expect.stringMatching(/^inorigin: /)])
    expect(err).toMatch(says)
    expect(existsSync(app.path(absent))).toBe(false)
    expect(app.get('package.json')).toBe(before)
  })
})

test.each([
  ['', 'Usage: inorigin init [folder] [options]'],
  [
    'add',
    'needs model.onnx|model.gguf|folder|owner/name. Usage: inorigin add <model.onnx|model.gguf|folder|owner/name>',
  ],
  ['init one two', 'inorigin init does not expect two. Usage: '],
  ['initt', 'initt is not a command. Did you mean init?'],
  ['xyzzyx', 'xyzzyx is not a command. Commands: init, add, types, catalog refresh'],
  ['catalog refrsh', 'Did you mean catalog refresh?'],
  ['catalog', 'catalog is not a command.'],
  ['creat --help', 'creat is not a command. Did you mean create?'],
  ['help creat', 'creat is not a command. Did you mean create?'],
  ['catalog refresh', 'inorigin catalog refresh needs file.'],
  ['init --no-guid', 'inorigin init takes no --no-guid. Did you mean --no-guide?'],
  ['add x.onnx --tga=@me/x', 'takes no --tga. Did you mean --tag?'],
  [
    'create my-app --template raect',
    '--template takes vanilla, react, static, not raect. Did you mean react?',
  ],
  ['init public --sw', "'--sw <value>' argument missing"],
  ['init', 'inorigin init public'],
  ['init public --nope', '--nope'],
  ['init public --sw ../sw.js', '../sw.js'],
  ['init public --sw a\nb.js', 'takes the name of a script'],
])('exits with 2 when not understood: inorigin %s', (args, says) => {
  const { code, err } = inorigin(...args.split(' ').filter((word) => word !== ''))
  expect(code).toBe(2)
  expect(err).toContain(says)
})

test('create writes into an empty folder only, whose name npm takes', () => {
  app.put('full/mine.txt', 'mine')
  const refusals = ['full', 'package.json', 'My App'].map((name) => inorigin('create', name))
  expect(refusals.map(({ code, err }) => [code, err])).toEqual([
    [1, 'inorigin: full has files already. Name a new folder.\n'],
    [1, 'inorigin: package.json is a file. Name a new folder.\n'],
    [1, expect.stringContaining('My App cannot be the name of a package. Use lower-case letters')],
  ])
  expect([readdirSync(app.path('full')), app.has('My App')]).toEqual([['mine.txt'], false])
  mkdirSync(app.path('empty'))
  expect(inorigin('create', 'empty').code).toBe(0)
  expect([app.has('empty/.gitignore'), app.has('empty/_gitignore')]).toEqual([true, false])
  expect(app.get('empty/package.json')).toContain('"name": "empty"')
})

test('create takes the folder it runs in, and one that is a new repository', () => {
  mkdirSync(app.path('cloned/.git'), { recursive: true })
  expect(inorigin('create', 'cloned').out).toContain('\n  cd cloned\n  npm install\n')
  mkdirSync(app.path('here'))
  const { out } = app.run(CLI, ['create', '.'], app.path('here'))
  expect(out).toMatch(/Start it:\n\n {2}npm install\n/)
  expect(app.get('here/package.json')).toContain('"name": "here"')
})

test('create takes the package from where it runs: a checkout, a packed file, or npm', () => {
  const dependencyOf = (folder: string): string =>
    JSON.parse(app.get(`${folder}/package.json`)).dependencies.inorigin
  const { out } = inorigin('create', 'deep/down', '--template', 'static')
  expect(resolve(app.path('deep/down'), dependencyOf('deep/down').replace('file:', ''))).toBe(ROOT)
  expect(out).toContain(`It uses inorigin from ${ROOT}.`)

  const project = 'mäh ordner'
  const installed = `${project}/node_modules/inorigin`
  for (const name of ['dist/cli.js', 'package.json', 'templates'])
    cpSync(join(ROOT, name), app.path(`${installed}/${name}`), { recursive: true })
  app.put('packed/inorigin-0.1.0.tgz', 'packed')
  const createAs = (spec: string, folder: string) => {
    app.put(`${project}/package.json`, JSON.stringify({ dependencies: { inorigin: spec } }))
    return app.run(app.path(`${installed}/dist/cli.js`), ['create', folder]).out
  }
  expect(createAs('file:../packed/inorigin-0.1.0.tgz', 'von hier/app')).toMatch(
    /inorigin-0\.1\.0\.tgz, which was copied.*\n {2}cd "von hier\/app"\n/s,
  )
  expect(dependencyOf('von hier/app')).toBe('file:inorigin-0.1.0.tgz')
  expect(app.get('von hier/app/inorigin-0.1.0.tgz')).toBe('packed')
  createAs('^0.1.0', 'app')
  expect(dependencyOf('app')).toMatch(/^\^\d/)
})

test('an interrupt leaves no half of a file', async () => {
  mkdirSync(app.path('public/inorigin/ort'), { recursive: true })
  const watcher = watch(app.path('public/inorigin/ort'))
  const begun = once(watcher, 'change')
  const child = spawn(process.execPath, [CLI, 'init', 'public'], { cwd: app.folder })
  const ended = once(child, 'exit')
  await begun
  watcher.close()
  child.kill('SIGINT')
  expect(await ended).toEqual([0, null])
  const options = { recursive: true, encoding: 'utf8', withFileTypes: true } as const
  const found = readdirSync(app.path('public'), options)
  expect(found.filter((one) => one.isFile())).toHaveLength(filesOf(app).length + 2)
  expect(app.has('public/sw.js')).toBe(true)
})

test.each([
  { args: ['init', 'pub\u001b]0;title\u0007lic\u202e', '--no-guide'], code: 0 },
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
    cpSync(join(ROOT, name), app.path(`package/${name}`), { recursive: true })
  }
  const alone = app.run(app.path('package/dist/cli.js'), ['init', 'public'])
  expect(alone.code).toBe(1)
  expect(alone.err).toContain('onnxruntime-web, which inorigin depends on, is not installed')
})
