import { playwright } from '@vitest/browser-playwright'
import { availableParallelism } from 'node:os'
import type { TestProjectConfiguration, TestTagDefinition } from 'vitest/config'
import { chromiumArgs, SHORT_LIVED_ARGS } from '../../test/setup/chromium.ts'

/**
 * Test files that run at once, beside the browser tests, which are one after the other. A browser
 * uses several cores itself: eight files of end-to-end tests took 108, 105 and 110 s with one, two and
 * three at once, on two cores. The fewer run, the less each of them waits for the others.
 */
const WORKERS = availableParallelism()

const browserTests = {
  enabled: true,
  headless: true,
  screenshotFailures: false,
  fileParallelism: false,
  // 54 s in place of 62 s alone, on two cores: 30 files load one page.
  isolate: false,
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

/** Tags of tests. A test without one runs in `npm test`, except in `e2e`. */
export const TEST_TAGS: TestTagDefinition[] = [
  { name: 'slow', description: 'Left out of `npm test`. `npm run test:slow` runs it.' },
  {
    name: 'everyday',
    description:
      'A test of `e2e` that `npm test` runs: one way through a feature that a user would miss.',
  },
]

/**
 * Levels of tests, each with its folder and its environment. In the mode `all`, the first three run every test;
 * else they run those of `npm test`. A filter on the command line has precedence.
 */
export function testProjects(mode: string): TestProjectConfiguration[] {
  const runsAll = mode === 'all'
  // Vitest reads the filter of each project, although its types have one only for all projects.
  const only = (...tagsFilter: string[]): object => (runsAll ? {} : { tagsFilter })
  return [
    {
      extends: true,
      test: {
        name: 'unit',
        ...only('!slow'),
        provide: { runsAll },
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
        ...only('!slow'),
        provide: { runsAll },
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
        ...only('everyday', '!slow'),
        provide: { runsAll },
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
  ]
}
