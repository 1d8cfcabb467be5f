/** Loads the WASM module. */
import { ConstraintError } from './error.ts'

/** The module `llguidance.wasm`: its URL, its bytes, or a function that resolves with them. */
export type WasmSource = URL | string | Uint8Array | (() => Promise<Uint8Array>)

/** Resolves with the compiled module. */
export async function loadModule(wasm: WasmSource): Promise<WebAssembly.Module> {
  if (typeof wasm === 'string' || wasm instanceof URL) {
    const bytes = await fetchBytes(wasm, 'default')
    // A file that a proxy changed, or that was stored only in part, is requested once more.
    return WebAssembly.compile(bytes).catch(async () =>
      WebAssembly.compile(await fetchBytes(wasm, 'reload')).catch((cause: unknown) => {
        throw missing(wasm, 'It is not a WASM module of this version, or WASM is forbidden.', cause)
      }),
    )
  }
  const bytes = typeof wasm === 'function' ? await wasm() : wasm
  return WebAssembly.compile(bytes as Uint8Array<ArrayBuffer>)
}

/** Resolves with the bytes of a file of any content type. */
async function fetchBytes(url: URL | string, cache: RequestCache): Promise<ArrayBuffer> {
  const response = await fetch(url, { cache }).catch((cause: unknown) => {
    throw missing(url, 'The server did not answer.', cause)
  })
  if (!response.ok) throw missing(url, `It has the status ${response.status}.`)
  return response.arrayBuffer()
}

const missing = (url: URL | string, why: string, cause?: unknown): ConstraintError =>
  new ConstraintError('constraint_missing', `${url} could not be loaded. ${why}`, { cause })
