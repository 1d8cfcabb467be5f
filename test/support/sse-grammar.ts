/** Functions of the grammar checkers: strict framing, and shapes that must match to the key. */

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

/**
 * Checks that an object has exactly these keys, which a space separates; a trailing `?` marks those that
 * may be missing.
 */
export function keys(value: unknown, where: string, names: string): Fields {
  const fields = object(value, where)
  const expected = names.split(' ').filter((name) => name !== '')
  const known = expected.map((name) => name.replace('?', ''))
  for (const key of Object.keys(fields)) ensure(known.includes(key), `${where} has the key ${key}`)
  for (const name of expected)
    ensure(name.endsWith('?') || name in fields, `${where} lacks the key ${name}`)
  return fields
}

/** The value of an object's only key. */
export const only = (value: unknown, name: string): unknown => keys(value, name, name)[name]

export function text(value: unknown, where: string): string {
  ensure(typeof value === 'string' && value !== '', `${where} is not a text`)
  return value
}

export function count(value: unknown, where: string): number {
  ensure(Number.isSafeInteger(value) && (value as number) >= 0, `${where} is not a count`)
  return value as number
}

/** Checks that these fields have these values. */
export function constant(fields: Fields, expected: Readonly<Fields>): void {
  for (const [key, value] of Object.entries(expected)) {
    const actual = JSON.stringify(fields[key])
    ensure(actual === JSON.stringify(value), `${key} is ${actual}`)
  }
}

/** Checks an object with one count that is at most another one, such as `cached_tokens`. */
export function countWithin(value: unknown, name: string, most: number): void {
  ensure(count(only(value, name), name) <= most, `more ${name} than tokens`)
}

/** Checks the details of a completion. Only those of chat completions may count draft tokens. */
function checkCompletionDetails(value: unknown, output: string, most: number): void {
  const drafts = 'accepted_prediction_tokens? rejected_prediction_tokens?'
  const names = output === 'completion' ? `reasoning_tokens ${drafts}` : 'reasoning_tokens'
  const { rejected_prediction_tokens: rejected, ...within } = keys(value, 'details', names)
  ensure(
    (rejected === undefined) === !('accepted_prediction_tokens' in within),
    'half of the draft tokens',
  )
  if (rejected !== undefined) count(rejected, 'rejected_prediction_tokens')
  for (const [name, amount] of Object.entries(within))
    ensure(count(amount, name) <= most, `more ${name} than tokens`)
}

/** Checks the usage of OpenAI's styles, which name the tokens of prompt and completion differently. */
export function checkUsage(value: unknown, input: string, output: string): Fields {
  const names = `${input}_tokens ${output}_tokens ${input}_tokens_details ${output}_tokens_details`
  const usage = keys(value, 'usage', `${names} total_tokens`)
  const [prompt, completion] = [input, output].map((name) => count(usage[`${name}_tokens`], name))
  ensure(usage['total_tokens'] === Number(prompt) + Number(completion), 'total_tokens is no sum')
  countWithin(usage[`${input}_tokens_details`], 'cached_tokens', Number(prompt))
  checkCompletionDetails(usage[`${output}_tokens_details`], output, Number(completion))
  return usage
}

export function oneOf(value: unknown, where: string, values: readonly unknown[]): void {
  ensure(values.includes(value), `${where} is ${JSON.stringify(value)}`)
}
