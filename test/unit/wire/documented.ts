/** What becomes of a documented field: something shows it, or the answer says that nothing does. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { GenerationRequest } from '../../../src/types/index.ts'
import { errorOf, scriptedHost, send } from './scripted-host.ts'
import type { Script } from './scripted-host.ts'

type Asked = Partial<Record<keyof GenerationRequest, unknown>>

export type Verdict =
  /** The request that it becomes has this in it. */
  | { asks: Asked }
  /** The answer is one in which this is found; the script is what the model does. */
  | { answers: RegExp; script?: Script; stream?: boolean }
  /** It says what is so anyway. */
  | 'as ever'
  /** It changes nothing, and the answer lists it. */
  | 'ignored'
  /** 400, and the field is named. */
  | 'refused'

/** A field by its path, a value, and what becomes of it. */
export type Row = readonly [field: string, value: unknown, verdict: Verdict]

/** What OpenAI's styles say to those who bill and route, which cannot change an answer. */
export const HINTS: readonly Row[] = [
  ['prompt_cache_key', 'k', 'ignored'],
  ['prompt_cache_options', {}, 'ignored'],
  ['prompt_cache_retention', '24h', 'ignored'],
  ['safety_identifier', 's', 'ignored'],
  ['service_tier', 'flex', 'ignored'],
  ['user', 'u', 'ignored'],
]

export const asks = (request: Asked): Verdict => ({ asks: request })

/** A copy of the body with a value at a path such as `messages[0].content`. */
function put(body: unknown, path: readonly string[], value: unknown): unknown {
  const [key, ...rest] = path
  if (key === undefined) return value
  const copy = (Array.isArray(body) ? [...body] : { ...(body as object) }) as Record<
    string,
    unknown
  >
  copy[key] = put(copy[key], rest, value)
  return copy
}

/** Walks the rows, and checks that each of these names has one. */
export function documents(
  path: string,
  base: object,
  rows: readonly Row[],
  names: readonly string[],
): void {
  const ask = async (body: unknown, script?: Script) => {
    const host = scriptedHost(script && { script })
    const response = await send(host, path, { body })
    return { host, response, request: host.requests[0] }
  }

  describe(`${path}: what is documented`, () => {
    it('is all in the list', () => {
      expect(names.length).toBeGreaterThan(3)
      const listed = new Set(rows.map(([field]) => field.replaceAll(/\[\d+\]/g, '[]')))
      expect(names.filter((name) => !listed.has(name))).toEqual([])
    })

    it.each(rows)('%s = %j', async (field, value, verdict) => {
      const body = put(base, field.split(/[.[\]]+/).filter(Boolean), value)
      if (verdict === 'refused') {
        const { host, response } = await ask(body)
        const { param } = await errorOf(response, 400)
        expect(param?.startsWith(field) || field.startsWith(`${param}.`), String(param)).toBe(true)
        expect(host.requests).toEqual([])
        return
      }
      if (typeof verdict === 'object' && 'answers' in verdict) {
        const { response } = await ask(
          { ...(body as object), ...(verdict.stream && { stream: true }) },
          verdict.script,
        )
        const text = await response.text()
        expect([response.status, text]).toEqual([200, expect.stringMatching(verdict.answers)])
        const without = await ask(
          { ...base, ...(verdict.stream && { stream: true }) },
          verdict.script,
        )
        expect(await without.response.text()).not.toMatch(verdict.answers)
        return
      }
      const { response, request } = await ask(body)
      expect(response.status, await response.clone().text()).toBe(200)
      const ignored = response.headers.get('x-inorigin-ignored')?.split(', ') ?? []
      const plain = (await ask(base)).request
      if (verdict === 'as ever' || verdict === 'ignored') {
        expect(request).toEqual(plain)
        expect(ignored).toEqual(verdict === 'ignored' ? [field.replaceAll(/\[\d+\]/g, '[]')] : [])
        return
      }
      expect(ignored).toEqual([])
      expect(request).toMatchObject(verdict.asks)
      expect(plain).not.toMatchObject(verdict.asks)
    })
  })
}

/** The fields of an interface in a package's types. */
export function fieldsOf(file: string, name: string, within = ''): string[] {
  const text = readFileSync(new URL(`../../../node_modules/${file}`, import.meta.url), 'utf8')
  const pattern = `^( *)(?:export )?(?:declare )?interface ${name}(?: extends [^{]*)? \\{\\n([\\s\\S]*?)^\\1\\}`
  const [, indent = '', inside = ''] = new RegExp(pattern, 'm').exec(text) ?? []
  return [...inside.matchAll(new RegExp(`^${indent}    '?(\\w+)'?\\??:`, 'gm'))].map(
    ([, field]) => within + field,
  )
}
