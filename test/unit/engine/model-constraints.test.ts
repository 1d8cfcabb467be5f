/** Constraints of a model: what its tokenizer gives them, and the errors of requests that they cause. */
import { readFile } from 'node:fs/promises'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import type { Constraint } from '../../../src/constraint/index.ts'
import { ModelConstraints } from '../../../src/engine/run/constraints.ts'
import { readConfig } from '../../../src/engine/text/config.ts'
import { WASM } from '../../support/random-constraints.ts'

const NAMES = ['config.json', 'generation_config.json', 'tokenizer.json', 'tokenizer_config.json']
const GUIDE = new URL('../../../demo/models/guide/', import.meta.url)
const { signal } = new AbortController()

afterEach(() => vi.unstubAllGlobals())

async function open(
  constraint: Constraint,
  answer = async () => new Response(new Blob([WASM as Uint8Array<ArrayBuffer>])),
) {
  const fetched: string[] = []
  vi.stubGlobal('fetch', (url: URL) => {
    fetched.push(url.href)
    return answer()
  })
  const texts = new Map<string, Blob>()
  for (const name of NAMES) texts.set(name, new Blob([await readFile(new URL(name, GUIDE))]))
  const config = await readConfig(texts)
  const constraints = new ModelConstraints(config, 'http://app.test/inorigin/')
  onTestFinished(() => constraints.close())
  return { matcher: await constraints.open(constraint, signal), config, fetched }
}

const json = (schema: Record<string, unknown>, strict = false): Constraint => ({
  type: 'json',
  schema,
  strict,
  path: 'format.schema',
})

test('its module comes from its folder, and its tokens from the tokenizer', async () => {
  const { matcher, config, fetched } = await open(json({ const: 'a', 'x-b': 1 }))
  expect(fetched).toEqual(['http://app.test/inorigin/llguidance.wasm'])
  expect(matcher.loosened).toEqual([{ path: 'format.schema', keyword: 'x-b' }])
  expect(new TextDecoder().decode(matcher.forced())).toBe('"a"')
  const [end = -1] = config.endTokens
  expect(matcher.accept(end)).toBe(false)
})

test.each<[string, Constraint, object]>([
  [
    'a keyword that cannot be kept',
    json({ type: 'array', uniqueItems: true }, true),
    {
      kind: 'invalid_request',
      code: 'unsupported_schema',
      param: 'format.schema',
      details: { path: 'format.schema', keyword: 'uniqueItems' },
    },
  ],
  [
    'a pattern',
    { type: 'pattern', pattern: '(a)\\1' },
    { kind: 'invalid_request', code: 'unsupported_constraint', param: undefined },
  ],
  [
    'a grammar',
    { type: 'grammar', grammar: 'root ::=' },
    { kind: 'invalid_request', code: 'invalid_grammar' },
  ],
])('an error of %s is that of a request', async (_what, constraint, error) => {
  await expect(open(constraint)).rejects.toMatchObject(error)
})

test('a module that is missing is no fault of the request', async () => {
  const missing = async () => new Response('', { status: 404 })
  const error = { kind: 'unavailable', code: 'constraint_missing' }
  await expect(open(json({}), missing)).rejects.toMatchObject(error)
})
