/**
 * Reads the results that Vitest wrote, for `.ci/run`. `FILE-again.json` beside `FILE.json` has the results of the
 * files that ran once more.
 *
 * - `files FILE` prints the test files in which a test failed, relative to the working directory.
 * - `failures FILE...` prints each test that failed, with the first lines of the reason.
 * - `counts FILE...` prints how many tests passed and failed; a test that passed at last has passed.
 */
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'

/** Lines of the reason of a failure that are printed. */
const MAX_REASON_LINES = 20

const [command = '', ...paths] = process.argv.slice(2)
const results = new Map(paths.map((path) => [path, JSON.parse(readFileSync(path, 'utf8'))]))

function printFailures() {
  for (const { name, message, assertionResults } of listFiles()) {
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
  for (const [path, { numPassedTests, numFailedTests }] of results) {
    if (path.endsWith('-again.json')) continue
    const again = results.get(path.replace(/\.json$/, '-again.json'))
    const stillFailed = Math.min(again?.numFailedTests ?? Infinity, numFailedTests)
    passed += numPassedTests + numFailedTests - stillFailed
    failed += stillFailed
  }
  console.log(`${passed} passed, ${failed} failed`)
}

function printFiles() {
  for (const { name, status } of listFiles()) {
    if (status === 'failed') console.log(relative(process.cwd(), name))
  }
}

const listFiles = () => [...results.values()].flatMap(({ testResults }) => testResults)

const commands = { files: printFiles, failures: printFailures, counts: printCounts }
commands[command]?.()
