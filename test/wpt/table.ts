/** Prints what came of the web platform tests. */
import type { WptReport, WptResult } from './bootstrap.ts'

/** A file of tests, and what came of it or why it did not run. */
export interface FileReport {
  name: string
  skipped: string | undefined
  /** What came of its tests, without those that were left out. */
  report: WptReport | undefined
  /** Number of its tests that were left out, because they need the echo model of Chromium. */
  left: number
}

const VERDICTS = ['passed', 'FAILED', 'TIMED OUT', 'NOT RUN', 'not supported'] as const

/** Takes the tests that need the echo model out of a report. */
export function toFileReport({
  name,
  skipped,
  report,
  echoTests,
}: Omit<FileReport, 'left'> & { echoTests: readonly string[] }): FileReport {
  if (!report) return { name, skipped, report, left: 0 }
  const tests = report.tests.filter((test) => !echoTests.includes(test.name))
  return { name, skipped, report: { ...report, tests }, left: report.tests.length - tests.length }
}

/** Returns one line for each file, and one for each of its tests that did not pass. */
export function toTable(reports: readonly FileReport[]): string {
  return reports.map(toLines).join('\n')
}

function toLines({ name, skipped, report, left }: FileReport): string {
  if (!report) return `- ${name}: left out, because it ${skipped}`
  const { tests, status, message } = report
  const count = `${tests.filter(isPassed).length}/${tests.filter(isRequired).length}`
  const failures = tests
    .filter((test) => !isPassed(test))
    .map((test) => `    ${VERDICTS[test.status]}: ${test.name}: ${test.message ?? ''}`)
  const harness = status === 0 && tests.length + left > 0 ? [] : [`    no result: ${message ?? ''}`]
  const echo = left > 0 ? [`    left out: ${left} tests that need the echo model of Chromium`] : []
  return [`${count} ${name}`, ...harness, ...failures, ...echo].join('\n')
}

/** Returns the numbers of all tests that ran, without those of what a model does not support. */
export function summarize(reports: readonly FileReport[]): string {
  const all = reports.flatMap(({ report }) => report?.tests ?? [])
  const ran = all.filter(isRequired)
  const passed = ran.filter(isPassed).length
  const skipped = reports.filter(({ report }) => !report).length
  const share = ran.length > 0 ? ((100 * passed) / ran.length).toFixed(1) : '0'
  const optional = all.length - ran.length
  const left = reports.reduce((sum, report) => sum + report.left, 0)
  return [
    `${passed} of ${ran.length} tests passed (${share} %)`,
    `${optional} test what the model does not support`,
    `${left} tests and ${skipped} files were left out`,
  ].join('; ')
}

/** Status of a test of something optional that is not there. */
const NOT_SUPPORTED = 4

/** Returns `false` for a test of something that the model does not support. */
export const isRequired = ({ status }: WptResult): boolean => status !== NOT_SUPPORTED

export const isPassed = ({ status }: WptResult): boolean => status === 0
