/**
 * Finds `page.waitForFunction` with a function that returns a promise. Playwright takes a promise for true, whatever it
 * resolves with: https://playwright.dev/docs/api/class-page#page-wait-for-function
 */

const MESSAGE =
  'Playwright takes this promise for true. Use expect.poll(() => page.evaluate(async () => ...)).'

export const asyncPredicate = {
  meta: { type: 'problem', docs: { description: 'Tests wait for what they say.' } },
  create(context) {
    return {
      CallExpression({ callee, arguments: [predicate] }) {
        if (callee.property?.name !== 'waitForFunction' || !predicate) return
        if (predicate.async || isPromise(predicate.body))
          context.report({ node: predicate, message: MESSAGE })
      },
    }
  },
}

/** Matches the calls of browser interfaces that tests wait for, and `.then(...)`. */
function isPromise({ type, callee } = {}) {
  if (type !== 'CallExpression') return false
  const { name, object, property } = callee
  return name === 'fetch' || object?.name === 'caches' || property?.name === 'then'
}
