/**
 * Finds `page.waitForFunction` with an `async` function. Playwright takes the promise for true, so the test goes on at once:
 * https://playwright.dev/docs/api/class-page#page-wait-for-function
 */

const MESSAGE =
  'Playwright does not wait for this promise. Use expect.poll(() => page.evaluate(async () => ...)).'

export const asyncPredicate = {
  meta: { type: 'problem', docs: { description: 'Tests wait for what they say.' } },
  create(context) {
    return {
      CallExpression({ callee, arguments: [predicate] }) {
        if (callee.property?.name !== 'waitForFunction' || !predicate?.async) return
        context.report({ node: predicate, message: MESSAGE })
      },
    }
  },
}
