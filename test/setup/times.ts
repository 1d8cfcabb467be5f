/** Where the time of a test run went, and the limit of a file's time. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Reporter, TestModule, Vitest } from 'vitest/node'

/**
 * Time in milliseconds that a file may take without its slow tests: its imports, hooks and tests, alone on an
 * idle machine. A stranger waits for `npm test`, and each change pays for it.
 */
const MAX_FILE_MS = 20_000

/** Times of a file over the limit that are compared: that of the run, and those alone after it. */
const MEASUREMENTS = 3

/** Share of the processors that other programs may use while a file is measured. */
const MAX_BUSY_SHARE = 0.2

/** Projects whose files have a limit. Those of the others install apps and start other browsers. */
const LIMITED_PROJECTS = ['unit', 'browser', 'e2e']

const SLOWEST_FILES = 10

/** Names the file in which a run of one file leaves its time, in milliseconds. */
const TIME_FILE = 'INORIGIN_TEST_TIME_FILE'

/**
 * Prints the slowest files and the totals of the projects at the end of a run, and fails that of CI if a file is over
 * {@link MAX_FILE_MS}.
 *
 * A time in a busy run says that a file is fast, but not that it is slow. So in CI a file over the limit runs again,
 * alone, until one of {@link MEASUREMENTS} times is within the limit. If other programs are busy then, the file is
 * named and not judged. `CI=true npm test` judges, too.
 */
export default class TimesReporter implements Reporter {
  #vitest!: Vitest
  #start = 0

  onInit(vitest: Vitest): void {
    this.#vitest = vitest
    this.#start = performance.now()
  }

  async onTestRunEnd(modules: readonly TestModule[]): Promise<void> {
    const timeFile = process.env[TIME_FILE]
    if (timeFile) {
      writeFileSync(timeFile, String(modules.reduce((sum, module) => sum + timeOf(module), 0)))
      return
    }
    // A run of one file has no table, and its time is printed already.
    if (modules.length < 2) return
    this.#printTotals(modules)
    const over = modules.filter(isOverLimit)
    if (process.env['CI'] === 'true') {
      for (const module of over) await this.#judge(module)
    } else if (over.length > 0) {
      print(
        `Beside others, ${over.length} files took over ${MAX_FILE_MS / 1000} s. CI measures them alone.`,
      )
    }
  }

  #printTotals(modules: readonly TestModule[]): void {
    const slowest = modules.toSorted((one, other) => timeOf(other) - timeOf(one))
    print('\nSlowest files:')
    for (const module of slowest.slice(0, SLOWEST_FILES)) {
      print(`${seconds(timeOf(module))}  ${module.relativeModuleId}`)
    }
    print('\nTimes of the files by project, of which some run at once:')
    for (const project of new Set(modules.map((module) => module.project.name))) {
      const own = modules.filter((module) => module.project.name === project)
      const time = own.reduce((sum, module) => sum + timeOf(module), 0)
      print(
        `${seconds(time)}  ${project}: ${own.length} files, ${own.flatMap(testsThatRan).length} tests`,
      )
    }
    print(`${seconds(performance.now() - this.#start)}  from start to end`)
  }

  /** Measures a file alone and fails the run if it is over the limit again and again. */
  async #judge(module: TestModule): Promise<void> {
    const file = module.relativeModuleId
    const times = [timeOf(module)]
    const tell = (what: string) => print(`${file} took ${times.map(seconds).join(', ')}. ${what}`)
    while (times.length < MEASUREMENTS) {
      if ((await measureBusyShare()) > MAX_BUSY_SHARE) {
        return tell('The machine is busy with other programs, so this is no failure.')
      }
      const time = this.#measureAlone(module)
      times.push(time)
      if (time <= MAX_FILE_MS) return tell('Alone it is within the limit.')
    }
    process.exitCode = 1
    tell(
      `The limit is ${seconds(MAX_FILE_MS)}: make it faster, split it, or give its long tests the tag "slow".`,
    )
  }

  /** Returns the time of the file in a run of its own; that of a run that fails counts, too. */
  #measureAlone({ project, relativeModuleId }: TestModule): number {
    const folder = mkdtempSync(join(tmpdir(), 'inorigin-times-'))
    const timeFile = join(folder, 'time')
    const { mode } = this.#vitest.vite.config
    const vitest = join('node_modules', 'vitest', 'vitest.mjs')
    const args = [vitest, 'run', '--mode', mode, '--project', project.name, relativeModuleId]
    for (const filter of project.config.tagsFilter ?? []) args.push(`--tags-filter=${filter}`)
    const env = { ...process.env, [TIME_FILE]: timeFile }
    spawnSync(process.execPath, args, { cwd: this.#vitest.config.root, env, stdio: 'ignore' })
    const time = Number(readFileSync(timeFile, 'utf8'))
    rmSync(folder, { recursive: true })
    return time
  }
}

/** Returns the time in milliseconds of the file's imports, hooks and tests. */
function timeOf(module: TestModule): number {
  const { environmentSetupDuration, collectDuration, setupDuration, duration } = module.diagnostic()
  return environmentSetupDuration + collectDuration + setupDuration + duration
}

const testsThatRan = (module: TestModule) =>
  [...module.children.allTests()].filter((test) => test.result().state !== 'skipped')

const isOverLimit = (module: TestModule): boolean =>
  LIMITED_PROJECTS.includes(module.project.name) &&
  timeOf(module) > MAX_FILE_MS &&
  !ranSlowTests(module)

const ranSlowTests = (module: TestModule): boolean =>
  testsThatRan(module).some(({ options }) => options.tags?.includes('slow'))

/** Resolves with the share of the processors' time that was used during a second. */
async function measureBusyShare(): Promise<number> {
  const before = readProcessorTimes()
  // oxlint-disable-next-line tests/no-fixed-wait -- A share of time is measured over a time.
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  const after = readProcessorTimes()
  return 1 - (after.idle - before.idle) / (after.total - before.total)
}

function readProcessorTimes(): { idle: number; total: number } {
  const times = cpus().map((processor) => processor.times)
  const idle = times.reduce((sum, time) => sum + time.idle, 0)
  const total = times.reduce((sum, time) => sum + Object.values(time).reduce((a, b) => a + b), 0)
  return { idle, total }
}

const seconds = (milliseconds: number): string =>
  `${(milliseconds / 1000).toFixed(1)} s`.padStart(8)

const print = (line: string): void => void process.stdout.write(`${line}\n`)
