/**
 * Returns `true` if the value is an instance of one of these global classes. A thread may lack some
 * of them: workers have no elements, and Node.js has no images.
 */
export function isInstanceOf(value: unknown, classes: readonly string[]): boolean {
  const globals: Partial<Record<string, unknown>> = globalThis as never
  return classes.some((name) => {
    const constructor = globals[name]
    return typeof constructor === 'function' && value instanceof constructor
  })
}
