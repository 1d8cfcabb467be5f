/**
 * Finds the `expect` that is imported from vitest in tests that run at the same time. Only that of the test's
 * context knows to which of them an assertion belongs. https://vitest.dev/api/test#test-concurrent
 */

const MESSAGE =
  'In a concurrent test, take `expect` from the context: test.concurrent(name, async ({ expect }) => ...).'
const FUNCTIONS = ['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']

export const concurrentExpect = {
  meta: {
    type: 'problem',
    docs: { description: 'Concurrent tests use the expect of their context.' },
  },
  create(context) {
    const callbacks = []
    return {
      CallExpression(node) {
        if (isConcurrent(node)) callbacks.push(...node.arguments)
      },
      'Program:exit'() {
        const variables = context.sourceCode.scopeManager.scopes.flatMap((scope) => scope.variables)
        const functions = reachable(callbacks, variables)
        for (const { references } of variables.filter(isImportedExpect)) {
          for (const { identifier } of references) {
            if (functions.some((one) => isWithin(identifier, one)))
              context.report({ node: identifier, message: MESSAGE })
          }
        }
      },
    }
  },
}

/** Matches `test.concurrent(...)`, `describe.concurrent(...)`, `it.concurrent.each(...)(...)` and `{ concurrent: true }`. */
function isConcurrent({ callee, arguments: given }) {
  const names = []
  let at = callee
  while (at.type !== 'Identifier') {
    if (at.type === 'MemberExpression') names.push(at.property.name)
    const next = at.object ?? at.callee ?? at.tag
    if (!next) return false
    at = next
  }
  if (!['test', 'it', 'describe', 'suite'].includes(at.name)) return false
  return names.includes('concurrent') || given.some(isConcurrentOption)
}

function isConcurrentOption({ properties = [] }) {
  return properties.some(({ key, value }) => key?.name === 'concurrent' && value?.value === true)
}

/** Returns the functions among these nodes, and all functions of the file that those name. */
function reachable(nodes, variables) {
  const found = new Set()
  const pending = [...nodes]
  for (const node of pending) {
    if (found.has(node)) continue
    if (FUNCTIONS.includes(node.type)) found.add(node)
    for (const { defs, references } of variables) {
      if (references.some(({ identifier }) => isWithin(identifier, node)))
        pending.push(...defs.flatMap(functionOf))
    }
  }
  return [...found]
}

function functionOf({ node }) {
  const value = node.type === 'VariableDeclarator' ? node.init : node
  return value && FUNCTIONS.includes(value.type) ? [value] : []
}

function isImportedExpect({ defs }) {
  return defs.some(
    ({ node, parent }) => node.imported?.name === 'expect' && parent?.source?.value === 'vitest',
  )
}

const isWithin = (inner, outer) =>
  outer.range[0] <= inner.range[0] && inner.range[1] <= outer.range[1]
