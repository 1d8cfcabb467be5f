/**
 * Sets variables in the environment of the WebAssembly runtime. Its C++ code has switches there that
 * no session option sets. The module exports no `ENV` and runs no `preRun`, so a variable is written
 * to the memory of the module, where emscripten stored the environment.
 */

/** Variables that emscripten gives to every program, and that ONNX Runtime does not read. */
const UNUSED_VARIABLES = 'USER=web_user\0LOGNAME=web_user\0PATH=/\0'

/**
 * Writes a variable such as `NAME=1`, of at most 37 bytes, over the unused ones in the memory of a
 * module. A session reads it while it is created. If there are no unused variables, nothing changes.
 */
export function setEnvironmentVariable(memory: Uint8Array, variable: string): void {
  const text = new TextEncoder()
  const at = findBytes(memory, text.encode(UNUSED_VARIABLES))
  if (at >= 0) memory.set(text.encode(`${variable}\0`), at)
}

/** Returns the position of the first occurrence of `wanted`, or -1. */
function findBytes(bytes: Uint8Array, wanted: Uint8Array): number {
  const first = wanted[0] as number
  for (let at = bytes.indexOf(first); at >= 0; at = bytes.indexOf(first, at + 1)) {
    if (wanted.every((byte, index) => bytes[at + index] === byte)) return at
  }
  return -1
}
