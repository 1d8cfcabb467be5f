/** Functions that the grammar checkers share: strict framing, and shapes that must match to the key. */

export interface SseFrame {
  event: string | null
  data: string
}

export type Fields = Record<string, unknown>

export function fail(why: string): never {
  throw new Error(`off grammar: ${why}`)
}

export function ensure(condition: boolean, why: string): asserts condition {
  if (!condition) fail(why)
}

/**
 * Splits a raw stream into its events. Each is an optional `event:` line and one `data:` line, ended
 * by an empty line; comments may stand anywhere; nothing else may. Of one that was `cut`, because its
 * reader gave up, the last event may be torn.
 */
export function parseFrames(raw: string, cut = false): SseFrame[] {
  ensure(!raw.includes('\r'), 'carriage return')
  const whole = cut || raw === '' || raw.endsWith('\n\n')
  ensure(whole, 'the last event is not ended by an empty line')
  return raw
    .split('\n\n')
    .slice(0, -1)
    .flatMap((block): SseFrame[] => {
      ensure(block !== '' && !block.startsWith('\n'), 'an empty line too many')
      const lines = block.split('\n').filter((line) => !line.startsWith(':'))
      if (lines.length === 0) return []
      const event = lines[0]?.startsWith('event: ')
        ? (lines.shift() ?? '').slice('event: '.length)
        : null
      ensure(event !== '', 'an event without a name')
      ensure(lines.length === 1, `not one data line in ${JSON.stringify(block)}`)
      const data = lines[0] ?? ''
      ensure(
        data.startsWith('data: ') && data.length > 'data: '.length,
        `no data in ${JSON.stringify(block)}`,
      )
      return [{ event, data: data.slice('data: '.length) }]
    })
}

export function parseObject(json: string): Fields {
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch {
    fail(`data is not JSON: ${json}`)
  }
  return object(value, 'data')
}

export function object(value: unknown, where: string): Fields {
  ensure(
    typeof value === 'object' && value !== null && !Array.isArray(value),
    `${where} is not an object`,
  )
  return value as Fields
}

/** Exactly these keys; a trailing `?` marks those that may be missing. */
export function keys(value: unknown, where: string, names: readonly string[]): Fields {
  const fields = object(value, where)
  const known = names.map((name) => name.replace('?', ''))
  for (const key of Object.keys(fields)) ensure(known.includes(key), `${where} has the key ${key}`)
  for (const name of names)
    ensure(name.endsWith('?') || name in fields, `${where} lacks the key ${name}`)
  return fields
}

export function text(value: unknown, where: string): string {
  ensure(typeof value === 'string' && value !== '', `${where} is not a text`)
  return value
}

export function count(value: unknown, where: string): number {
  ensure(Number.isSafeInteger(value) && (value as number) >= 0, `${where} is not a count`)
  return value as number
}

export function oneOf(value: unknown, where: string, values: readonly unknown[]): void {
  ensure(values.includes(value), `${where} is ${JSON.stringify(value)}`)
}
