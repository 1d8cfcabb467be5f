/** Fetches and compiles the WebAssembly of the runtime. */

/**
 * Compiles a file while it arrives, so that the browser keeps compiled code of it. The service worker
 * answers `no-cache` with its copy, unchecked, because to hash 14 MB first delays the first token. If
 * that does not compile, `reload` makes it check the copy (docs/decisions/0015-assets-by-digest.md).
 * Rejects with a `RangeError` if memory is exhausted, and else with an error that names the URL.
 */
export async function compileWasm(url: string): Promise<WebAssembly.Module> {
  try {
    return await fetchAndCompile(url, 'no-cache').catch(() => fetchAndCompile(url, 'reload'))
  } catch (cause) {
    if (cause instanceof RangeError) throw cause
    throw new Error(`Failed to load ${url}: ${String(cause)}`, { cause })
  }
}

async function fetchAndCompile(url: string, cache: RequestCache): Promise<WebAssembly.Module> {
  const response = await fetch(url, { cache })
  if (!response.ok) throw new Error(`The status is ${response.status}.`)
  const isTyped = response.headers.get('content-type')?.startsWith('application/wasm')
  return isTyped
    ? WebAssembly.compileStreaming(response)
    : WebAssembly.compile(await response.arrayBuffer())
}
