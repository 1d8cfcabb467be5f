/** Finds the schemas to which references refer, by pointer, anchor, or name of a schema inside. */
import { isObject, under } from './plain.ts'

/** Schema as it was sent, with its place. */
export interface Node {
  readonly value: unknown
  readonly path: string
  /** Address at which its references begin. */
  readonly base: string
  /** Addresses of the schemas that led to it, which dynamic references search, the outermost first. */
  readonly scope: readonly string[]
}

export type Keywords = Readonly<Record<string, unknown>>

export const keywordsOf = ({ value }: Node): Keywords => Object(value)

/** Address of a schema that has none. */
const ROOT = 'schema:/'

/** Keywords whose values are data, in which `$id` and the like mean nothing. */
const DATA = new Set(['const', 'enum', 'default', 'example', 'examples'])

/** Parts of a schema below which names follow, not keywords. */
const MAPS = new Set(
  'properties patternProperties dependentSchemas dependencies $defs definitions'.split(' '),
)

export class References {
  readonly root: Node
  /** Schemas by address: those with an `$id`, and those with an anchor. */
  readonly #nodes = new Map<string, Node>()
  readonly #bases = new Map<unknown, string>()
  /** Names of dynamic anchors, by address. */
  readonly #dynamic = new Map<string, Set<string>>()

  constructor(value: unknown, path: string) {
    const root = { value, path, base: ROOT, scope: [] }
    this.#nodes.set(ROOT, root)
    this.#index(value, path, ROOT)
    this.root = this.#enter({ ...root, base: this.#bases.get(value) ?? ROOT })
  }

  below({ value, path, base, scope }: Node, ...keys: readonly (string | number)[]): Node {
    let now: unknown = value
    let at = path
    for (const key of keys) {
      now = Array.isArray(now) ? now[Number(key)] : isObject(now) ? now[key] : undefined
      at = under(at, key)
    }
    return this.#enter({ value: now, path: at, base: this.#bases.get(now) ?? base, scope })
  }

  /** Adds the node's address to its scope, if dynamic references may find something there. */
  #enter(node: Node): Node {
    const { base, scope } = node
    const isKnown = scope.includes(base) || !this.#dynamic.has(base)
    return isKnown ? node : { ...node, scope: [...scope, base] }
  }

  /**
   * Returns the schema to which a reference of the node refers; `undefined` if it is not in this schema. A dynamic
   * reference refers to the outermost schema with the anchor of the usual one, if that anchor is dynamic.
   */
  resolve(reference: string, node: Node, isDynamic = false): Node | undefined {
    const { address, fragment } = split(join(reference, node.base))
    const isPointer = fragment === '' || fragment.startsWith('/')
    const root = this.#nodes.get(isPointer ? address : `${address}#${decode(fragment)}`)
    const target = root && this.#follow(root, isPointer ? fragment : '')
    const usual = target && this.#enter({ ...target, scope: node.scope })
    const hasAnchor = (each: string): boolean | undefined => this.#dynamic.get(each)?.has(fragment)
    const outermost =
      isDynamic && hasAnchor(usual?.base ?? address) ? node.scope.find(hasAnchor) : undefined
    return outermost === undefined ? usual : this.resolve(`${outermost}#${fragment}`, node)
  }

  #follow(root: Node, pointer: string): Node | undefined {
    const names = pointer.split('/').slice(1).map(decode)
    const keys = names.map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
    let node: Node = { ...root, base: this.#bases.get(root.value) ?? root.base }
    for (const key of keys) {
      const { value } = node
      const isThere = Array.isArray(value)
        ? /^\d+$/.test(key) && Number(key) < value.length
        : isObject(value) && Object.hasOwn(value, key)
      if (!isThere) return undefined
      node = this.below(node, Array.isArray(value) ? Number(key) : key)
    }
    return isObject(node.value) || typeof node.value === 'boolean' ? node : undefined
  }

  /** Notes the addresses of a schema and of those below it. It needs no recursion, so that depth is no limit. */
  #index(root: unknown, rootPath: string, rootBase: string): void {
    const pending = [{ value: root, path: rootPath, base: rootBase, isMap: false }]
    for (let entry = pending.pop(); entry; entry = pending.pop()) {
      const { value, path, isMap } = entry
      let { base } = entry
      if (Array.isArray(value)) {
        value.forEach((each: unknown, index) =>
          pending.push({ value: each, path: under(path, index), base, isMap: false }),
        )
        continue
      }
      if (!isObject(value)) continue
      if (!isMap) base = this.#note(value, path, base)
      for (const [key, each] of Object.entries(value)) {
        if (!isMap && DATA.has(key)) continue
        pending.push({ value: each, path: under(path, key), base, isMap: !isMap && MAPS.has(key) })
      }
    }
  }

  /** Notes the addresses of one schema, and returns the address at which its references begin. */
  #note(value: Keywords, path: string, outer: string): string {
    const { $id, id, $anchor, $dynamicAnchor } = value
    const own = typeof $id === 'string' ? $id : typeof id === 'string' ? id : ''
    const { address, fragment } = split(join(own, outer))
    this.#bases.set(value, address)
    const node = { value, path, base: address, scope: [] }
    if (own !== '' && fragment === '' && !this.#nodes.has(address)) this.#nodes.set(address, node)
    const anchors = [fragment, $anchor, $dynamicAnchor].filter(
      (each) => typeof each === 'string' && each !== '',
    )
    for (const anchor of anchors) this.#nodes.set(`${address}#${String(anchor)}`, node)
    if (typeof $dynamicAnchor === 'string') {
      const names = this.#dynamic.get(address) ?? new Set()
      this.#dynamic.set(address, names.add($dynamicAnchor))
    }
    return address
  }
}

/** Returns a reference as an address. One that is no valid URI stays as it is. */
function join(reference: string, base: string): string {
  if (reference.startsWith('#')) return `${split(base).address}${reference}`
  if (reference === '') return base
  try {
    return new URL(reference, base).href
  } catch {
    return reference
  }
}

function split(address: string): { address: string; fragment: string } {
  const at = address.indexOf('#')
  return at < 0
    ? { address, fragment: '' }
    : { address: address.slice(0, at), fragment: address.slice(at + 1) }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
