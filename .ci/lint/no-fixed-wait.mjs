/** Finds `new Promise((resolve) => setTimeout(resolve, N))`: it is too short on a busy machine, else too long. */

const MESSAGE =
  'A fixed wait fails on a slow machine. Wait for what has to happen, with expect.poll or vi.waitFor, or use fake timers.'

export const noFixedWait = {
  meta: { type: 'problem', docs: { description: 'Tests wait for events, not for a time.' } },
  create(context) {
    return {
      NewExpression(node) {
        if (node.callee.name !== 'Promise') return
        const [executor] = node.arguments
        const resolve = executor?.params?.[0]?.name
        const call = resolve && onlyCall(executor)
        if (call && isTimer(call) && resolves(call.arguments[0], resolve))
          context.report({ node, message: MESSAGE })
      },
    }
  },
}

/** Returns the call that a function consists of; `undefined` where there is more in it. */
function onlyCall({ body }) {
  const [only, ...others] = body.type === 'BlockStatement' ? body.body : [body]
  const expression = only?.type === 'ExpressionStatement' ? only.expression : only
  return others.length === 0 && expression?.type === 'CallExpression' ? expression : undefined
}

/** A timer of no length only lets other tasks run first. */
function isTimer({ callee, arguments: [, delay] }) {
  const name = callee.type === 'MemberExpression' ? callee.property.name : callee.name
  return name === 'setTimeout' && delay !== undefined && delay.value !== 0
}

function resolves(callback, resolve) {
  if (callback?.type === 'Identifier') return callback.name === resolve
  return callback?.body !== undefined && onlyCall(callback)?.callee.name === resolve
}
