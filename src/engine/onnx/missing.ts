/** Detects that files of the runtime are missing, and reports it. */
import { InoriginError } from '../../error.ts'
import { oneOf } from '../failure.ts'

/** Messages of browsers and of the runtime when one of the runtime's files is missing. */
const RUNTIME_MISSING = oneOf(
  'failed to load \\S+\\.wasm',
  'no available backend',
  'both async and sync fetching of the wasm failed',
  'failed to fetch dynamically imported module',
  'error loading dynamically imported module',
  'importing a module script failed',
)

/** Returns the error for a runtime that could not be loaded from the folder. */
export function runtimeMissing(folder: string, cause: unknown): InoriginError {
  return new InoriginError(
    'unavailable',
    `Failed to load ONNX Runtime from ${folder}. Run \`npx inorigin init\` for the folder that ` +
      'the app serves, and check that its content security policy allows WebAssembly.',
    { code: 'runtime_missing', cause },
  )
}

/** Returns `true` if the message says that a file of the runtime is missing. */
export function isRuntimeMissing(thrown: unknown): boolean {
  return RUNTIME_MISSING.test(thrown instanceof Error ? thrown.message : String(thrown))
}
