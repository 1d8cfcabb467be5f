/** Where the time of a test run went. */
import type { Reporter, TestModule } from 'vitest/node'

const SLOWEST_FILES = 10

/**
 * Prints the slowest files and the totals of the projects at the end of a run. It judges none of them: the time of
 * a file says as much about the machine, and what else it does, as about the file.
 */
export default class TimesReporter implements Reporter {
  #start = 0

  onInit(): void {
    this.#start = performance.now()
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    // A run of one file has no table, and its time is printed already.
    if (modules.length < 2) return
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
}

/** Returns the time in milliseconds of the file's imports, hooks and tests. */
function timeOf(module: TestModule): number {
  const { environmentSetupDuration, collectDuration, setupDuration, duration } = module.diagnostic()
  return environmentSetupDuration + collectDuration + setupDuration + duration
}

const testsThatRan = (module: TestModule) =>
  [...module.children.allTests()].filter((test) => test.result().state !== 'skipped')

const seconds = (milliseconds: number): string =>
  `${(milliseconds / 1000).toFixed(1)} s`.padStart(8)

const print = (line: string): void => void process.stdout.write(`${line}\n`)
