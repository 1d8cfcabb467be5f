import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import {
  defaultClientConditions,
  type EnvironmentOptions,
  type Plugin,
  type UserConfig,
} from 'vite'
import { defineConfig } from 'vitest/config'
import { toLlmsText, writeDocs } from './.ci/build/docs.ts'
import {
  copyPlaygroundModels,
  describeShell,
  emitCatalogSchema,
  emitConstraintEngine,
  emitManifest,
  emitMlcCatalog,
  emitModels,
} from './.ci/build/emit.ts'
import { writeLicenses } from './.ci/build/licenses.ts'
import { emitPassages } from './.ci/build/passages.ts'
import { devFolder, strictPolicy } from './.ci/build/serve.ts'
import { writeSite } from './.ci/build/site.ts'
import { sizeReport } from './.ci/build/size.ts'
import { writeSource } from './.ci/build/source.ts'
import { TEST_TAGS, testProjects } from './.ci/build/test-projects.ts'
import { emitWorkerLicenses } from './.ci/build/worker-licenses.ts'
import packageJson from './package.json' with { type: 'json' }
import { init } from './src/cli/init.ts'
import { LongestFirst } from './test/setup/sequencer.ts'

const at = (path: string): string => resolve(import.meta.dirname, path)

const DIST = at('dist')
const DEMO = at('dist-demo')
const RUNTIME = at('node_modules/onnxruntime-web/dist')
const MODELS = at('demo/models')
const CONSTRAINTS = at('src/constraint')

/** Scripts that `inorigin init` copies into `inorigin/`. */
const SCRIPTS = {
  index: at('src/index.ts'),
  worker: at('src/host/worker.ts'),
  'model-worker': at('src/host/model-worker.ts'),
  'vocabulary-worker': at('src/constraint/vocabulary-worker.ts'),
}

/** Entry points for an app's bundler and tests. */
const EXTRAS = {
  store: at('src/extras/store.ts'),
  react: at('src/extras/react.ts'),
  testing: at('src/extras/testing/server.ts'),
  'language-model': at('src/extras/language-model/index.ts'),
  // The page that `inorigin bridge` serves.
  'bridge-page': at('src/extras/bridge-page.ts'),
}

/** The first makes onnxruntime-web leave its wasm files where they are, instead of inlining them. */
const conditions = ['onnxruntime-web-use-extern-wasm', ...defaultClientConditions]

const define = { 'process.env.NODE_ENV': '"production"' }

/** ES modules for pages and dedicated workers: nothing in them is left to be resolved. */
const modules: EnvironmentOptions = {
  consumer: 'client',
  define,
  resolve: { conditions },
  build: {
    outDir: DIST,
    emptyOutDir: true,
    license: { fileName: 'licenses/modules.json' },
    lib: { entry: { ...SCRIPTS, ...EXTRAS, 'sw/index': at('sw/index.ts') }, formats: ['es'] },
    rolldownOptions: {
      external: ['react'],
      output: {
        entryFileNames: '[name].js',
        // `inorigin init` leaves out what only models compiled by MLC need, by this name.
        chunkFileNames: ({ moduleIds }) =>
          `chunks/${moduleIds.some((id) => id.includes('/@mlc-ai/web-llm/')) ? 'mlc' : '[name]'}-[hash].js`,
      },
    },
  },
}

/** One classic script, because `import()` and, in older browsers, `import` do not exist there. */
const serviceWorker: EnvironmentOptions = {
  consumer: 'client',
  define,
  build: {
    outDir: DIST,
    emptyOutDir: false,
    license: { fileName: 'licenses/sw.json' },
    lib: {
      entry: at('sw/classic.ts'),
      formats: ['iife'],
      name: 'inorigin',
      fileName: () => 'sw.js',
    },
    rolldownOptions: {
      output: {
        // `inorigin init` knows its own script by this line.
        postBanner: `/*! inorigin ${packageJson.version} service worker, written by inorigin init; licenses: inorigin/licenses.md */`,
      },
    },
  },
}

const cli: EnvironmentOptions = {
  consumer: 'server',
  // It says itself what is not installed.
  resolve: { noExternal: true },
  build: {
    outDir: DIST,
    emptyOutDir: false,
    minify: false,
    license: { fileName: 'licenses/cli.json' },
    lib: { entry: at('src/cli.ts'), formats: ['es'], fileName: () => 'cli.js' },
    // The command is one file.
    rolldownOptions: { platform: 'node', external: /^node:/, output: { codeSplitting: false } },
  },
}

/** The Vite plugin, which runs in the Vite of an app. */
const vitePlugin: EnvironmentOptions = {
  ...cli,
  build: {
    ...cli.build,
    license: { fileName: 'licenses/vite.json' },
    lib: { entry: { vite: at('src/extras/vite/plugin.ts') }, formats: ['es'] },
    rolldownOptions: { platform: 'node', external: [/^node:/, 'vite'] },
  },
}

/** What the package consists of, in the order it is built: the first empties the folder. */
const PACKAGE: Record<string, EnvironmentOptions> = { modules, serviceWorker, cli, vitePlugin }

/** Languages that `demo/markdown/languages.ts` imports. */
const CODE_LANGUAGES = readFileSync(at('demo/markdown/languages.ts'), 'utf8').match(
  /(?<=languages\/)\w+/g,
)

/** The parser of answers runs in a worker, where the entry that packages have for pages needs a document. */
const alias = {
  'decode-named-character-reference': at('node_modules/decode-named-character-reference/index.js'),
}

const playground: EnvironmentOptions = {
  define: { INORIGIN_VERSION: JSON.stringify(packageJson.version) },
  build: {
    outDir: DEMO,
    emptyOutDir: true,
    rolldownOptions: {
      input: [at('demo/index.html'), at('demo/bench.html'), at('demo/sandbox.html')],
    },
  },
}

/** The playground's own service worker, which is built after the page that it keeps. */
const playgroundWorker: EnvironmentOptions = {
  consumer: 'client',
  define,
  build: {
    outDir: DEMO,
    emptyOutDir: false,
    lib: {
      entry: at('demo/sw.ts'),
      formats: ['iife'],
      name: 'playground',
      fileName: () => 'playground-sw.js',
    },
    rolldownOptions: { output: { postBanner: () => describeShell(DEMO) } },
  },
}

/** What a build consists of, in its order. */
const BUILT: Record<string, EnvironmentOptions> = {
  ...PACKAGE,
  client: playground,
  playgroundWorker,
}

/** Builds the package, then the playground on top of it as any app would. */
const builder: UserConfig['builder'] = {
  async buildApp(vite) {
    for (const name of Object.keys(BUILT)) {
      const environment = vite.environments[name]
      if (environment) await vite.build(environment)
    }
    const { name, version, license: identifier } = packageJson
    writeLicenses(DIST, { name, version, identifier, text: readFileSync(at('LICENSE'), 'utf8') })
    const choice = { guide: true, mlc: false, webgpu: true }
    init({ publicDir: DEMO, sw: 'sw.js', ...choice, dist: DIST, runtime: RUNTIME })
    copyPlaygroundModels(MODELS, join(DEMO, 'inorigin/models'))
    writeDocs(import.meta.dirname, DEMO, packageJson)
    writeSite(import.meta.dirname, join(DEMO, 'site'), packageJson)
    writeSource(import.meta.dirname, DEMO)
    const pages = readFileSync(at('docs/README.md'), 'utf8')
    writeFileSync(at('dist/llms.txt'), toLlmsText(pages, packageJson, '../docs'))
    vite.config.logger.info(sizeReport(DIST))
  },
}

const inModules = (plugin: Plugin): Plugin => ({
  ...plugin,
  applyToEnvironment: ({ name }) => name === 'modules',
})

export default defineConfig(({ command, mode }) => ({
  root: process.env['VITEST'] ? import.meta.dirname : at('demo'),
  // The built playground runs in any folder of a web server.
  base: './',
  appType: 'mpa',
  publicDir: false,
  resolve: { conditions, alias },
  // The worker of the playground loads parts of itself later.
  worker: { format: 'es', plugins: () => [emitWorkerLicenses('licenses-worker.md')] },
  environments: command === 'build' ? BUILT : { client: playground },
  builder,
  optimizeDeps: {
    // Found late, a dependency makes the page reload: in the middle of a test, or of an answer.
    include: [
      '@cfworker/json-schema',
      '@huggingface/tokenizers',
      '@mlc-ai/web-llm',
      ...(CODE_LANGUAGES ?? []).map((name) => `highlight.js/lib/languages/${name}`),
      'hash-wasm',
      'idb',
      'lowlight',
      'mdast-util-from-markdown',
      'mdast-util-gfm',
      'mdast-util-math',
      'micromark-extension-gfm',
      'micromark-extension-math',
      'react',
      'react-dom/client',
      'temml',
      'valibot',
    ],
    exclude: ['onnxruntime-web'],
  },
  server: { port: Number(process.env['PORT'] ?? 5173) },
  preview: { port: Number(process.env['PORT'] ?? 5173), strictPort: true },
  plugins: [
    inModules(emitCatalogSchema()),
    inModules(emitMlcCatalog()),
    inModules(emitModels(MODELS)),
    inModules(emitConstraintEngine(CONSTRAINTS)),
    {
      ...emitManifest(at('demo')),
      applyToEnvironment: ({ name }) => name === 'client',
      apply: 'build',
    },
    {
      ...emitPassages(import.meta.dirname),
      applyToEnvironment: ({ name }) => name === 'client',
    },
    strictPolicy(),
    devFolder({
      scripts: Object.fromEntries(
        Object.entries(SCRIPTS).map(([name, path]) => [`${name}.js`, path]),
      ),
      sw: at('sw/classic.ts'),
      folders: { models: MODELS },
      files: { 'llguidance.wasm': at('src/constraint/llguidance.wasm') },
      runtime: RUNTIME,
    }),
  ],
  test: {
    // A second, the default, is little where many processes share a core. Only a test that fails waits so long.
    expect: { poll: { timeout: 60_000 } },
    sequence: { sequencer: LongestFirst },
    reporters: ['default', './test/setup/times.ts'],
    tags: TEST_TAGS,
    projects: testProjects(mode),
  },
}))
