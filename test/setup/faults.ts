/**
 * Runs once before the browser tests: a file server on another origin that fails as it is told to.
 */
import type { TestProject } from 'vitest/node'
import { openFaults } from '../support/faults.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Address of the fault server, with a trailing slash. */
    faults: string
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await openFaults()
  project.provide('faults', server.url)
  return server.close
}
