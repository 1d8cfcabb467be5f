import { playwright } from '@vitest/browser-playwright'
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import {
  defaultClientConditions,
  type EnvironmentOptions,
  type Plugin,
  type UserConfig,
} from 'vite'
import { defineConfig } from 'vitest/config'
import { describeShell, emitCatalogSchema, emitMlcCatalog, emitModels } from './.ci/build/emit.ts'
import { writeLicenses } from './.ci/build/licenses.ts'
import { devFolder, strictPolicy } from './.ci/build/serve.ts'
import { sizeReport } from './.ci/build/size.ts'
import packageJson from './package.json' with { type: 'json' }
import { init } from './src/cli/init.ts'
import { chromiumArgs, SHORT_LIVED_ARGS } from './test/setup/chromium.ts'
import { LongestFirst } from './test/setup/sequencer.ts'

const at = (path: string): string => resolve(import.meta.dirname, path)

const DIST = at('dist')
const DEMO = at('dist-demo')
const RUNTIME = at('node_modules/onnxruntime-web/dist')
const MODELS = at('demo/models')

/** Scripts that `inorigin init` copies into `inorigin/`. */
const SCRIPTS = {
  index: at('src/index.ts'),
  worker: at('src/host/worker.ts'),
  'model-worker': at('src/host/model-worker.ts'),
}

/** Entry points for an app's bundler and tests. */
const ADAPTERS = {
  store: at('src/adapters/store.ts'),
  testing: at('src/adapters/testing/server.ts'),
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
    lib: { entry: { ...SCRIPTS, ...ADAPTERS, 'sw/index': at('sw/index.ts') }, formats: ['es'] },
    rolldownOptions: {
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
    rolldownOptions: { platform: 'node', external: /^node:/ },
  },
}

/** The Vite plugin, which runs in the Vite of an app. */
const vitePlugin: EnvironmentOptions = {
  ...cli,
  build: {
    ...cli.build,
    license: { fileName: 'licenses/vite.json' },
    lib: { entry: at('src/vite.ts'), formats: ['es'], fileName: () => 'vite.js' },
    rolldownOptions: { platform: 'node', external: [/^node:/, 'vite'] },
  },
}

/** What the package consists of, in the order it is built: the first empties the folder. */
const PACKAGE: Record<string, EnvironmentOptions> = { modules, serviceWorker, cli, vitePlugin }

const playground: EnvironmentOptions = {
  define: { INORIGIN_VERSION: JSON.stringify(packageJson.version) },
  build: {
    outDir: DEMO,
    emptyOutDir: true,
    rolldownOptions: { input: [at('demo/index.html'), at('demo/bench.html')] },
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
    init({ publicDir: DEMO, sw: 'sw.js', guide: true, mlc: false, dist: DIST, runtime: RUNTIME })
    vite.config.logger.info(sizeReport(DIST))
  },
}

const inModules = (plugin: Plugin): Plugin => ({
  ...plugin,
  applyToEnvironment: ({ name }) => name === 'modules',
})

/**
 * Test files that run at once, beside the browser tests, which are one after the other. Many
 * end-to-end tests wait for time limits of the product, and leave their core to another meanwhile.
 */
const WORKERS = Math.ceil(availableParallelism() * 1.5)

const browserTests = {
  enabled: true,
  headless: true,
  screenshotFailures: false,
  fileParallelism: false,
  provider: playwright({
    launchOptions: {
      get executablePath() {
        return process.env['CHROMIUM_PATH']
      },
      args: [...chromiumArgs(), ...SHORT_LIVED_ARGS],
    },
  }),
  instances: [{ browser: 'chromium' as const }],
}

export default defineConfig(({ command }) => ({
  root: process.env['VITEST'] ? import.meta.dirname : at('demo'),
  appType: 'mpa',
  publicDir: false,
  resolve: { conditions },
  environments: command === 'build' ? BUILT : { client: playground },
  builder,
  optimizeDeps: {
    // Found late, a dependency makes the page reload: in the middle of a test, or of an answer.
    include: [
      '@cfworker/json-schema',
      '@huggingface/jinja',
      '@huggingface/tokenizers',
      '@mlc-ai/web-llm',
      '@mlc-ai/web-xgrammar',
      'hash-wasm',
      'idb',
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
    strictPolicy(),
    devFolder({
      scripts: Object.fromEntries(
        Object.entries(SCRIPTS).map(([name, path]) => [`${name}.js`, path]),
      ),
      sw: at('sw/classic.ts'),
      folders: { models: MODELS },
      runtime: RUNTIME,
    }),
  ],
  test: {
    // A second, the default, is little where many processes share a core. Only a test that fails waits so long.
    expect: { poll: { timeout: 60_000 } },
    sequence: { sequencer: LongestFirst },
    tags: [{ name: 'slow', description: 'Left out of `npm test`. `npm run test:all` runs it.' }],
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          environment: 'node',
          // Modules are evaluated once a worker: 128 s of CPU in place of 187 s on two cores. So no file
          // may mock a module, and what a test replaces is put back after it.
          isolate: false,
          restoreMocks: true,
          unstubGlobals: true,
          maxWorkers: WORKERS,
          testTimeout: 180_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'browser',
          include: ['test/browser/**/*.test.ts'],
          globalSetup: ['test/setup/browser.ts', 'test/setup/faults.ts'],
          maxWorkers: WORKERS,
          testTimeout: 180_000,
          sequence: { groupOrder: 0 },
          browser: browserTests,
        },
      },
      {
        extends: true,
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          environment: 'node',
          globalSetup: 'test/setup/demo.ts',
          isolate: false,
          maxWorkers: WORKERS,
          testTimeout: 300_000,
          hookTimeout: 300_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'browsers',
          include: ['test/browsers/**/*.test.ts'],
          environment: 'node',
          globalSetup: 'test/setup/build.ts',
          fileParallelism: false,
          testTimeout: 300_000,
          hookTimeout: 120_000,
          sequence: { groupOrder: 4 },
        },
      },
      {
        extends: true,
        test: {
          name: 'mlc',
          include: ['test/mlc/**/*.test.ts'],
          environment: 'node',
          globalSetup: 'test/setup/demo.ts',
          testTimeout: 600_000,
          hookTimeout: 600_000,
          sequence: { groupOrder: 3 },
        },
      },
      {
        extends: true,
        test: {
          name: 'templates',
          include: ['test/templates/**/*.test.ts'],
          environment: 'node',
          globalSetup: 'test/templates/setup.ts',
          fileParallelism: false,
          testTimeout: 600_000,
          hookTimeout: 600_000,
          sequence: { groupOrder: 4 },
        },
      },
      {
        extends: true,
        test: {
          name: 'long',
          include: ['test/long/**/*.test.ts'],
          environment: 'node',
          globalSetup: 'test/setup/demo.ts',
          fileParallelism: false,
          testTimeout: 3_600_000,
          hookTimeout: 120_000,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
}))
