/** The order of test files. */
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Projects in the order in which workers take their files: first the one with the longest files. */
const PROJECTS = ['e2e', 'unit']

/**
 * End-to-end tests that take about a minute beside others, the longest first. Most of that time is a time limit of the
 * product or of a browser, or lies in a hook, so neither the size nor the last result of a file tells it.
 */
const LONG = [
  'conformance',
  'playground',
  'deaths',
  'failover',
  'offline-versions',
  'choice',
  'storage',
  'updates',
  'add',
  'split-runtime',
]

/** Returns the place in the list, or its end. */
const rankIn = (list: readonly string[], isIt: (name: string) => boolean): number => {
  const rank = list.findIndex(isIt)
  return rank < 0 ? list.length : rank
}

const projectRank = ({ project }: TestSpecification): number =>
  rankIn(PROJECTS, (name) => name === project.name)

const fileRank = ({ moduleId }: TestSpecification): number =>
  rankIn(LONG, (name) => moduleId.endsWith(`/test/e2e/${name}.test.ts`))

/**
 * Runs the files of a project one after the other, because a worker starts anew, and imports all modules again,
 * when its next file is of another project. Long files come first, so that at the end no worker is left with one
 * of them alone.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).sort(
      (one, other) => projectRank(one) - projectRank(other) || fileRank(one) - fileRank(other),
    )
  }
}
