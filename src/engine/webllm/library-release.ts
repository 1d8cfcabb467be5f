/**
 * Finds the release of WebLLM that a model's library links with, from the functions it imports. A
 * library links only with releases that have the same runtime.
 */
import { InoriginError } from '../../error.ts'

/** Release of WebLLM in this package. */
export const WEBLLM_RELEASE = '0.2.86'

/** Functions that only libraries of other releases import, the oldest first. */
const FOREIGN_IMPORTS: readonly (readonly [name: string, releases: string])[] = [
  ['TVMWasmPackedCFunc', '0.2.79 or earlier'],
  ['TVMWasmPackedCFuncFinalizer', '0.2.79 or earlier'],
  ['_ZN3tvm7runtime9threading10NumThreadsEv', '0.2.80 to 0.2.84'],
  ['_ZN3tvm7runtime9threading15ResetThreadPoolEv', '0.2.80 to 0.2.84'],
]

/**
 * Resolves with the error for a library that was compiled for another release; `null` if its imports
 * do not show one. Call it after the library failed to link, because it is compiled again.
 */
export async function findForeignRelease(
  name: string,
  library: Blob,
  cause: unknown,
): Promise<InoriginError | null> {
  const module = await WebAssembly.compile(await library.arrayBuffer()).catch(() => null)
  const imported = new Set(module && WebAssembly.Module.imports(module).map((each) => each.name))
  const found = FOREIGN_IMPORTS.find(([each]) => imported.has(each))
  if (!found) return null
  const [symbol, releases] = found
  const what = `${name} was compiled for WebLLM ${releases}: it imports ${symbol}, which WebLLM`
  const todo = `Compile the model again with the MLC release for ${WEBLLM_RELEASE}`
  return new InoriginError(
    'unavailable',
    `${what} ${WEBLLM_RELEASE} of this app does not have. ${todo}, or use a library from its list.`,
    { code: 'model_unusable', cause },
  )
}
