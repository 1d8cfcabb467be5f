/**
 * Reads the results that Vitest wrote, for `.ci/run`:
 *
 * - `files FILE` prints the test files in which a test failed, relative to the working directory.
 * - `failures FILE...` prints each test that failed, with the first lines of the reason.
 * - `counts FILE...` prints how many tests passed and failed. A missing file counts as a failure. If
 *   `FILE-again` exists, its tests count as they ended there.
 */
import { existsSync, readFileSync } from 'node:fs'
import { relative } from 'node:path'

/** Lines of the reason of a failure that are printed. */
const MAX_REASON_LINES = 20

const [command = '', ...paths] = process.argv.slice(2)
const read = (path) => (existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : undefined)
const files = paths.flatMap((path) => read(path)?.testResults ?? [])

function printFailures() {
  for (const { name, message, assertionResults } of files) {
    for (const test of assertionResults.filter(({ status }) => status === 'failed')) {
      console.log(`\nFAILED ${name}: ${test.fullName} (${Math.round(test.duration ?? 0)} ms)`)
      const reason = test.failureMessages.join('\n').split('\n')
      console.log(reason.slice(0, MAX_REASON_LINES).join('\n'))
    }
    if (message) console.log(`\nFAILED ${name}: ${message}`)
  }
}

function printCounts() {
  let passed = 0
  let failed = 0
  for (const path of paths) {
    const { numPassedTests, numFailedTests } = read(path) ?? {
      numPassedTests: 0,
      numFailedTests: 1,
    }
    const again = read(path.replace(/\.json$/, '-again.json'))
    const stillFailed = again ? Math.min(again.numFailedTests, numFailedTests) : numFailedTests
    passed += numPassedTests + numFailedTests - stillFailed
    failed += stillFailed
  }
  console.log(`${passed} passed, ${failed} failed`)
}

if (command === 'failures') printFailures()
if (command === 'counts') printCounts()
if (command === 'files') {
  for (const { name, status } of files) {
    if (status === 'failed') console.log(relative(process.cwd(), name))
  }
}
