/** Finds `vi.waitFor` and `vi.waitUntil` without a timeout: theirs is a second, which a busy machine exceeds. */

const MESSAGE =
  'Without a timeout this waits for one second, which a busy machine exceeds. Give it 20_000 as the second argument.'

export const waitTimeout = {
  meta: { type: 'problem', docs: { description: 'Tests say how long they wait for an event.' } },
  create(context) {
    return {
      CallExpression(node) {
        const { object, property } = node.callee
        if (object?.name !== 'vi' || !['waitFor', 'waitUntil'].includes(property?.name)) return
        const [, options] = node.arguments
        const names = options?.properties?.map(({ key }) => key?.name)
        if (!options || (names && !names.includes('timeout')))
          context.report({ node, message: MESSAGE })
      },
    }
  },
}
