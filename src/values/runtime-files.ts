/**
 * Names of the runtime's files in `inorigin/ort/`. The command writes them, and the runtime's worker
 * loads them.
 */

/**
 * The build for WebGPU where WebAssembly cannot suspend, as in Firefox and Safari. With 26.8 MB it is
 * over the 25 MiB that some static hosts allow for a file, so it is stored in parts.
 * https://developers.cloudflare.com/pages/platform/limits/#file-size
 */
export const SPLIT_RUNTIME_FILE = 'ort-wasm-simd-threaded.asyncify.wasm'

/** Names of the parts, in order. They end with `.wasm`, as all that is kept like a runtime does. */
export const RUNTIME_PARTS: readonly string[] = [0, 1].map((index) =>
  SPLIT_RUNTIME_FILE.replace(/\.wasm$/, `.${index}.wasm`),
)
