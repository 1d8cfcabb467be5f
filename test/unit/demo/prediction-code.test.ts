/** The code of a request, run with a server and a page that only look. */
import { expect, test } from 'vitest'
import { toFetchCode, toPredictCode } from '../../../demo/predictors/code.ts'
import type { FieldValue } from '../../../demo/predictors/field.ts'

const FILE = "document.querySelector('#file').files[0]"

const VALUES = new Map<string, FieldValue>([
  ['text', { value: 'it\'s "so"', code: JSON.stringify('it\'s "so"') }],
  ['count', { value: 7n, code: '7n', remote: '7' }],
  [
    'my input',
    { value: null, code: FILE, remote: `{ data: await toDataURL(${FILE}), dtype: 'binary' }` },
  ],
])

/** Runs code as the body of an async function, with these variables. */
async function run(code: string, variables: Record<string, unknown>): Promise<void> {
  const AsyncFunction = (async () => {}).constructor as FunctionConstructor
  await new AsyncFunction(...Object.keys(variables), code)(...Object.values(variables))
}

const document = { querySelector: () => ({ files: ['chosen'] }) }

test('the call of server.predict passes the values', async () => {
  const calls: unknown[] = []
  const predict = async (...args: unknown[]) => {
    calls.push(args)
    return { outputs: { y: 1 } }
  }
  const logged: unknown[] = []
  const console = { log: (...values: unknown[]) => logged.push(...values) }
  await run(toPredictCode('@a/b', VALUES), { inorigin: { predict }, document, console })
  expect(calls).toEqual([['@a/b', { text: 'it\'s "so"', count: 7n, 'my input': 'chosen' }]])
  expect(logged[0]).toEqual({ y: 1 })
})

test('the request sends the values, and files as data URLs', async () => {
  const requests: { url: string; body: unknown }[] = []
  const fetch = async (url: string, { body }: { body: string }) => {
    requests.push({ url, body: JSON.parse(body) })
    return { json: async () => ({ results: [] }) }
  }
  class FileReader {
    result = ''
    onload = (): void => {}
    readAsDataURL(file: string): void {
      this.result = `data:,${file}`
      this.onload()
    }
  }
  const code = toFetchCode('@a/b', VALUES, 'https://site.example/app/v1')
  await run(code, { fetch, FileReader, document, console: { log: () => {} } })
  const inputs = {
    text: 'it\'s "so"',
    count: 7,
    'my input': { data: 'data:,chosen', dtype: 'binary' },
  }
  const url = '/app/v1/predictions/remote'
  expect(requests).toEqual([{ url, body: { tag: '@a/b', inputs } }])
})
