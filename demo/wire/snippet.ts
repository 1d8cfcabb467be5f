import type { WireRequest } from './style.ts'

/** Returns the request as code for the console of this page. */
export function snippet(url: string, { headers, body }: WireRequest): string {
  const { pathname } = new URL(url)
  return `const response = await fetch(${quote(pathname)}, {
  method: 'POST',
  headers: ${indent(literal(headers))},
  body: JSON.stringify(${indent(literal(body))}),
})
const reader = response.body
  .pipeThrough(new TextDecoderStream())
  .getReader()
while (true) {
  const { done, value } = await reader.read()
  if (done) break
  console.log(value)
}
`
}

/** Number of characters of a data URL that the code shows. Images have millions. */
const SHOWN_DATA_CHARACTERS = 60

const shortenData = (text: string): string =>
  text.startsWith('data:') && text.length > SHOWN_DATA_CHARACTERS
    ? `${text.slice(0, SHOWN_DATA_CHARACTERS)}…`
    : text

/** Returns a value as handwritten JavaScript: bare names, and strings in single quotes. */
export function literal(value: unknown): string {
  if (typeof value === 'string') return quote(shortenData(value))
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const isList = Array.isArray(value)
  const items = Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .map(([name, item]) => (isList ? literal(item) : `${key(name)}: ${literal(item)}`))
  const [open, close] = isList ? '[]' : '{}'
  const line = isList ? `[${items.join(', ')}]` : `{ ${items.join(', ')} }`
  if (line.length <= 44 && !line.includes('\n')) return line
  return `${open}\n${items.map((item) => `  ${indent(item)},\n`).join('')}${close}`
}

function key(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : quote(name)
}

export function quote(text: string): string {
  return `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`
}

export function indent(text: string): string {
  return text.replaceAll('\n', '\n  ')
}
