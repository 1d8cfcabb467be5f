/** Counts of tokens that an answer reports, by the names of its own style. */
import { eventReader } from '../wire/sse.ts'

/**
 * Returns a function that takes new text of the body, and returns the counts so far by their names.
 * A later count replaces an earlier one.
 */
export function usageReader(): (text: string) => ReadonlyMap<string, number> {
  const found = new Map<string, number>()
  const read = eventReader()
  return (text) => {
    for (const { data } of read(text)) {
      if (!data.includes('usage')) continue
      for (const usage of usagesOf(parse(data))) collect(usage, '', found)
    }
    return found
  }
}

type Fields = Readonly<Record<string, unknown>>

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null

function parse(data: string): Fields {
  try {
    const value: unknown = JSON.parse(data)
    return isFields(value) ? value : {}
  } catch {
    return {}
  }
}

/** Returns the `usage` of an event, or that of the message or response in it. */
function usagesOf({ usage, message, response }: Fields): Fields[] {
  const inner = [message, response].map((part) => (isFields(part) ? part['usage'] : undefined))
  return [usage, ...inner].filter(isFields)
}

function collect(usage: Fields, prefix: string, found: Map<string, number>): void {
  for (const [name, value] of Object.entries(usage)) {
    if (typeof value === 'number') found.set(prefix + name, value)
    else if (isFields(value)) collect(value, `${prefix}${name}.`, found)
  }
}
