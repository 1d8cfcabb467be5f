/** Files of the installed package that commands read. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { InoriginError } from '../error.ts'

/** Folder `dist` of the package, which holds the built command. */
export const DIST = import.meta.dirname

/** Returns the folder of onnxruntime-web's builds as installed for this package. */
export function findRuntime(): string {
  try {
    const file = 'onnxruntime-web/ort-wasm-simd-threaded.wasm'
    return dirname(createRequire(import.meta.url).resolve(file))
  } catch (cause) {
    const what = 'onnxruntime-web, which inorigin depends on, is not installed.'
    throw new InoriginError('unavailable', `${what} Run npm install, then this again.`, { cause })
  }
}

export function readVersion(): string {
  const text = readFileSync(join(DIST, '..', 'package.json'), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
