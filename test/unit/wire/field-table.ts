/** Tables of the fields of a request: a value of a field, and its effect. */
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import type { GenerationRequest } from '../../../src/types/index.ts'
import { shorten } from '../../../src/values/text.ts'
import { put } from './mutate.ts'
import { chatOf, errorOf, messageOf, scriptedHost, send } from './scripted-host.ts'
import type { Script } from './scripted-host.ts'

type Parts = Partial<Record<keyof GenerationRequest, unknown>>

/** The request is the same as without the field. */
export const SAME = 'same'
/** The request is the same, and the response lists the field as ignored. */
export const IGNORED = 'ignored'
export const REQUIRED = 'required'
/** May be followed by the advice: `unsupported; leave it out`. */
export const UNSUPPORTED = 'unsupported'

type Verdict =
  /** The request for the host contains this, and without the field it does not. */
  | { asks: Parts }
  /** The response matches, and without the field it does not. The model writes the script. */
  | { answers: RegExp; script?: Script; stream?: boolean }
  /** One of the constants above, or the end of the sentence "`field` must be ..." of a 400. */
  | string

/**
 * A path such as `messages[0].role`, and its value; `undefined` removes the field. The path '' stands
 * for the body, to which the fields of the value are added. `named` is the field in `param` of an
 * error, or the list of ignored fields, if that is another one.
 */
export type Row = readonly [field: string, value: unknown, verdict: Verdict, named?: string]

export const asks = (parts: Parts): Verdict => ({ asks: parts })

/** The part of one message among so many, for {@link asks}. */
export const messageAt = (index: number, part: object, count: number): Verdict =>
  asks({ messages: Array.from({ length: count }, (_, at) => (at === index ? part : {})) })

/** A short body for the path of a generation. */
export function bodyOf(path: string, fields: object = {}): object {
  if (path === '/v1/responses') return { model: '@acme/tiny', input: 'Hi', ...fields }
  return path.startsWith('/v1/messages') ? messageOf(fields) : chatOf(fields)
}

const withoutIndexes = (field: string) => field.replaceAll(/\[\d+\]/g, '[]')

async function expectRefusal(response: Response, param: string, verdict: string): Promise<void> {
  const error = await errorOf(response, 400)
  const [kind, advice = ''] = verdict.split('; ')
  expect(error).toMatchObject({ type: 'invalid_request_error', param })
  if (kind === UNSUPPORTED) {
    expect(error).toMatchObject({
      code: 'unsupported_parameter',
      details: { unsupported: [param] },
    })
    expect(error.message.startsWith(`\`${param}\``)).toBe(true)
    expect(error.message).toContain(` is not supported by this server; ${advice}`)
    return
  }
  const isMissing = verdict === REQUIRED
  const code = isMissing ? 'missing_required_parameter' : 'invalid_value'
  const message = `\`${param}\` ${isMissing ? 'is required' : `must be ${verdict}`}.`
  expect(error).toMatchObject({ code, message })
}

/** Defines a test for each row: the field is set in the base, a body that has it in no other way. */
export function testFields(path: string, base: object, rows: readonly Row[]): void {
  const ask = async (body: unknown, script?: Script) => {
    const host = scriptedHost(script && { script })
    const response = await send(host, path, { body })
    return { host, response, request: host.requests[0] }
  }
  const named = rows.map((row) => [`${row[0]} = ${shorten(`${JSON.stringify(row[1])}`, 80)}`, row])

  it.each(named as Array<[string, Row]>)('%s', async (_, [field, value, verdict, name]) => {
    const keys = field.split(/[.[\]]+/).filter((key) => key !== '')
    const body = field === '' ? { ...base, ...(value as object) } : put(base, keys, value)
    if (typeof verdict === 'object' && 'answers' in verdict) {
      const { answers, script, stream } = verdict
      for (const whole of [body, base]) {
        const { response } = await ask({ ...(whole as object), ...(stream && { stream }) }, script)
        const text = await response.text()
        expect([response.status, answers.test(text)], text).toEqual([200, whole === body])
      }
      return
    }
    const { host, response, request } = await ask(body)
    const isRefused = typeof verdict === 'string' && verdict !== SAME && verdict !== IGNORED
    if (isRefused) {
      await expectRefusal(response, name ?? field, verdict)
      expect(host.requests).toEqual([])
      return
    }
    expect(response.status, await response.clone().text()).toBe(200)
    const ignored = verdict === IGNORED ? withoutIndexes(field) : null
    expect(response.headers.get('x-inorigin-ignored')).toBe(name ?? ignored)
    const plain = (await ask(base)).request
    if (typeof verdict === 'string') {
      expect(request).toEqual(plain)
      return
    }
    expect(request).toMatchObject(verdict.asks)
    expect(plain).not.toMatchObject(verdict.asks)
  })
}

/** Checks that the rows have all of these documented fields. */
export function testCoverage(rows: readonly Row[], names: readonly string[]): void {
  it('covers every documented field', () => {
    expect(names.length).toBeGreaterThan(3)
    const covered = new Set(rows.map(([field]) => withoutIndexes(field)))
    expect(names.filter((name) => !covered.has(name))).toEqual([])
  })
}

/** The fields of an interface in the types of a package. */
export function fieldsOf(file: string, name: string, within = ''): string[] {
  const text = readFileSync(new URL(`../../../node_modules/${file}`, import.meta.url), 'utf8')
  const pattern = `^( *)(?:export )?(?:declare )?interface ${name}(?: extends [^{]*)? \\{\\n([\\s\\S]*?)^\\1\\}`
  const [, indent = '', inside = ''] = new RegExp(pattern, 'm').exec(text) ?? []
  return [...inside.matchAll(new RegExp(`^${indent}    '?(\\w+)'?\\??:`, 'gm'))].map(
    ([, field]) => within + field,
  )
}
