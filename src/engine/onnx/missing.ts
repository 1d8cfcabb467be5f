/** A runtime whose files are not where they were said to be. */
import { InoriginError } from '../../error.ts'
import { oneOf } from '../failure.ts'

/** What browsers and the runtime say when one of its files is not there. */
const RUNTIME_MISSING = oneOf(
  'no available backend',
  'both async and sync fetching of the wasm failed',
  'failed to fetch dynamically imported module',
  'error loading dynamically imported module',
  'importing a module script failed',
)

export function runtimeMissing(folder: string, cause: unknown): InoriginError {
  return new InoriginError(
    'unavailable',
    `The runtime could not be loaded from ${folder}. Run \`npx inorigin init\` for the folder ` +
      'the app serves, and check that its content security policy allows wasm.',
    { code: 'runtime_missing', cause },
  )
}

export function isRuntimeMissing(thrown: unknown): boolean {
  return RUNTIME_MISSING.test(thrown instanceof Error ? thrown.message : String(thrown))
}
