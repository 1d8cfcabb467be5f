/** Counts how many characters the methods of strings and patterns read, as a measure without a clock. */

/** Methods that read a string, which V8 first makes whole if it was joined from pieces. */
const STRING_METHODS = [
  'indexOf',
  'lastIndexOf',
  'includes',
  'trim',
  'trimStart',
  'trimEnd',
  'replace',
  'replaceAll',
  'search',
  'split',
  'match',
  'matchAll',
] as const

/** Returns the number of characters that are read while `run` runs. It must not wait. */
export function countReadCharacters(run: () => void): number {
  let count = 0
  const restores: (() => void)[] = []
  const wrap = (
    prototype: object,
    name: string,
    read: (self: never, result: unknown) => number,
  ) => {
    const original = Reflect.get(prototype, name) as (this: unknown, ...args: unknown[]) => unknown
    const counting = function (this: unknown, ...args: unknown[]): unknown {
      const result = original.apply(this, args)
      count += read(this as never, result)
      return result
    }
    Object.defineProperty(prototype, name, { value: counting, configurable: true, writable: true })
    restores.push(() =>
      Object.defineProperty(prototype, name, {
        value: original,
        configurable: true,
        writable: true,
      }),
    )
  }
  for (const name of STRING_METHODS) wrap(String.prototype, name, (self: string) => self.length + 1)
  // A sticky pattern stops at the first character that does not match.
  wrap(RegExp.prototype, 'exec', (self: RegExp, result) => {
    const found = result as RegExpExecArray | null
    return self.sticky ? (found?.[0].length ?? 0) + 1 : (found?.input.length ?? 1)
  })
  try {
    run()
  } finally {
    for (const restore of restores) restore()
  }
  return count
}
