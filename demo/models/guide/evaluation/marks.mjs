/** Rules that mark an answer. ../recipe/evaluate.py has the same ones. */

/** `{ right }`, or `{ name, arguments }` where calls are wanted, of an assistant's message. */
export function marks(want, { content, tool_calls: made }) {
  const text = content ?? ''
  const calls = (made ?? []).map(({ function: { name, arguments: json } }) => ({
    name,
    arguments: parsed(json),
  }))
  if (want.calls) {
    const names = (list) => list.map(({ name }) => name)
    return {
      name: same(names(calls).sort(), names(want.calls).sort()),
      arguments: same(sorted(calls), sorted(want.calls)),
    }
  }
  const has = (part) => text.toLowerCase().includes(part.toLowerCase())
  const right =
    (!want.direct || calls.length === 0) &&
    (!want.any || want.any.some(has)) &&
    (!want.all || want.all.every(has)) &&
    // The last one, so that worked steps do not count.
    (!want.number || text.match(/-?\d+/g)?.at(-1) === want.number) &&
    (!want.json || same(parsed(text), want.json))
  return { right }
}

const sorted = (calls) => calls.map((call) => JSON.stringify(canonical(call))).sort()

function parsed(json) {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

const same = (a, b) => JSON.stringify(canonical(a)) === JSON.stringify(canonical(b))

/** The same value with the keys of objects in order. */
function canonical(value) {
  if (Array.isArray(value)) return value.map(canonical)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, canonical(value[key])]),
  )
}
