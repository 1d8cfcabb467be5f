/** Rewrites keywords that ask for more once a property is there. */
import type { Part } from './choices.ts'
import { without } from './objects.ts'
import { all, any, isKeywords, isObject, type Plain } from './plain.ts'
import type { Node } from './references.ts'
import type { Source } from './source.ts'

/** Returns the schemas that apply once a name is there. */
export function rewriteDependents(node: Node, own: Plain, source: Source): Part[] {
  const value = Object(node.value) as Record<string, unknown>
  const required = isKeywords(own) ? (own.required ?? []) : []
  const parts: Part[] = []
  for (const keyword of ['dependentRequired', 'dependentSchemas', 'dependencies'] as const) {
    const dependents = value[keyword]
    if (!isObject(dependents)) continue
    for (const [name, each] of Object.entries(dependents)) {
      if (Array.isArray(each)) {
        const missing = each
          .map(String)
          .filter((other) => other !== name && !required.includes(other))
        if (missing.length === 0) continue
        const isThere = required.includes(name)
        parts.push([
          keyword,
          isThere ? { required: missing } : any(without(name), { required: [name, ...missing] }),
        ])
      } else {
        const schema = source.rewrite(source.below(node, keyword, name))
        parts.push([keyword, any(without(name), all({ required: [name] }, schema))])
      }
    }
  }
  return parts
}
