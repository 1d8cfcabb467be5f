/** Special tokens by their names. */
import type { EnginePart } from './expression.ts'

export class Tokens {
  readonly #ids: ReadonlyMap<string, number>
  readonly #names: readonly string[]
  readonly #parts = new Map<number, EnginePart>()

  constructor(ids: ReadonlyMap<string, number>) {
    this.#ids = ids
    this.#names = [...ids.keys()]
      .filter((name) => name !== '')
      .toSorted((a, b) => b.length - a.length)
  }

  /** Returns the token of a name such as `<think>`, or of an id such as `<[5]>`. */
  find(name: string): EnginePart | null {
    const id = this.#ids.get(name)
    if (id !== undefined) return this.#part(id)
    // The engine knows ranges of ids as well.
    return /^<\[[\^\d,*-]+\]>$/.test(name)
      ? { type: 'engine', kind: 'token', source: name, first: [] }
      : null
  }

  /** Divides a text into special tokens and the texts between them. */
  split(value: string): readonly (string | EnginePart)[] {
    const parts: (string | EnginePart)[] = []
    let start = 0
    for (let at = 0; at < value.length;) {
      const name = this.#names.find((each) => value.startsWith(each, at))
      const id = name === undefined ? undefined : this.#ids.get(name)
      if (name === undefined || id === undefined) {
        at += 1
        continue
      }
      if (at > start) parts.push(value.slice(start, at))
      parts.push(this.#part(id))
      at += name.length
      start = at
    }
    if (start < value.length) parts.push(value.slice(start))
    return parts
  }

  #part(id: number): EnginePart {
    const known = this.#parts.get(id)
    if (known) return known
    const part: EnginePart = { type: 'engine', kind: 'token', source: `<[${id}]>`, first: [] }
    this.#parts.set(id, part)
    return part
  }
}
