/** Fetches and compiles the WebAssembly of the runtime. */

/**
 * Compiles a file while it arrives, so that the browser keeps compiled code of it. The service worker
 * answers `no-cache` from a copy that it does not check, since to hash 14 MB takes longer than to read
 * them. If the copy does not compile, `reload` makes the service worker check it.
 */
export async function compileWasm(url: string): Promise<WebAssembly.Module> {
  try {
    return await fetchAndCompile(url, 'no-cache').catch(() => fetchAndCompile(url, 'reload'))
  } catch (cause) {
    // Memory is exhausted.
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
