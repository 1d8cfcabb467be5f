/** A field whose value is `null` has the effect of one that was not sent, on every path. */
import { describe, expect, it } from 'vitest'
import { BODIES } from './fuzz-values.ts'
import { type Path, pathsOf, put } from './mutate.ts'
import { chatOf, scriptedHost, send } from './scripted-host.ts'

/** Names below which the members are the client's own data, in which `null` is a value. */
const DATA = ['parameters', 'schema', 'input_schema', 'metadata']

/** Returns the paths of all fields of a body. Items of arrays are no fields. */
function fieldsOf(body: object): Path[] {
  return pathsOf(body).filter(
    (path) =>
      typeof path.at(-1) === 'string' &&
      !path.slice(0, -1).some((key) => DATA.includes(String(key))) &&
      // The arguments of a call.
      path.at(-2) !== 'input',
  )
}

async function outcomeOf(path: string, body: unknown) {
  const host = scriptedHost()
  const response = await send(host, path, { body })
  await response.body?.cancel()
  return {
    status: response.status,
    ignored: response.headers.get('x-inorigin-ignored'),
    asked: [host.requests, host.embedded, host.predictions],
  }
}

const EXTRA: Array<[string, object]> = [
  ['/v1/chat/completions', chatOf({ chat_template_kwargs: { enable_thinking: true } })],
  ['/v1/chat/completions', chatOf({ logit_bias: { 5: 1, 6: 2 } })],
]

describe.each([...Object.entries(BODIES), ...EXTRA])('%s', (path, body) => {
  const fields = fieldsOf(body).map((field): [string, Path] => [field.join('.'), field])

  it.each(fields)('accepts null in %s if the field is optional', async (_name, field) => {
    const without = await outcomeOf(path, put(body, field, undefined))
    const withNull = await outcomeOf(path, put(body, field, null))
    expect(withNull).toEqual(without)
  })
})
