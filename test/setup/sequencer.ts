/** The order of test files. */
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * End-to-end tests that take about a minute beside others, the longest first. Most of that time is a time limit of the
 * product or of a browser, or lies in a hook, so neither the size nor the last result of a file tells it.
 */
const LONG = ['conformance', 'storage', 'watchdog', 'choice', 'tabs', 'lost']

const rankOf = ({ moduleId }: TestSpecification): number => {
  const rank = LONG.findIndex((name) => moduleId.endsWith(`/test/e2e/${name}.test.ts`))
  return rank < 0 ? LONG.length : rank
}

/** Runs the longest files first, so that at the end no worker is left with one of them alone. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).sort((one, other) => rankOf(one) - rankOf(other))
  }
}
