/** Generates example code for a model that was added. */
import type { Entry, PredictorEntry } from '../../catalog/schema.ts'
import { ARRAYS, countElements } from '../../values/elements.ts'
import { toMemberName, toStringLiteral } from '../types/code.ts'

/** Maximum length of a tensor that the example creates as an array. */
const MAX_EXAMPLE_ELEMENTS = 2 ** 24

/** Returns the code of a page's script. `catalog` is the URL of the app's catalog. */
export function createSnippet(entry: Entry, catalog: string): string {
  const start = [
    "import { serve } from 'inorigin'",
    '',
    `const server = await serve({ catalog: '${catalog}' })`,
  ]
  const lines = entry.type === 'predictor' ? createPredictLines(entry) : createChatLines(entry.tag)
  return [...start, ...lines].join('\n')
}

function createChatLines(tag: string): string[] {
  return [
    "const response = await fetch('/v1/chat/completions', {",
    "  method: 'POST',",
    "  headers: { 'content-type': 'application/json' },",
    `  body: JSON.stringify({ model: '${tag}', messages: [{ role: 'user', content: 'Hello' }] }),`,
    '})',
    'console.log((await response.json()).choices[0].message.content)',
  ]
}

function createPredictLines({ tag, signature, implementations }: PredictorEntry): string[] {
  const bindings = implementations[0]?.bindings ?? {}
  const inputs = signature.inputs.map(
    ({ name, type }) => `  ${toMemberName(name)}: ${createExample(type, bindings[name]?.shape)},`,
  )
  const first = signature.outputs[0]?.name ?? ''
  const output = toMemberName(first) === first ? `.${first}` : `[${toStringLiteral(first)}]`
  return [
    `const { outputs } = await server.predict('${tag}', {`,
    ...inputs,
    '})',
    `console.log(outputs${output})`,
  ]
}

/** Returns the name of the typed array for a tensor type. Half floats use `Float32Array`. */
const getArrayName = (type: string): string =>
  ARRAYS[type === 'float16' ? 'float32' : (type as keyof typeof ARRAYS)].name

/** Returns an example value of that type and shape. Dynamic dimensions are 1. */
function createExample(type: string, shape: readonly (number | null)[] | undefined): string {
  if (type === 'image') return 'document.images[0]'
  const lengths = (shape ?? []).map((length) => length ?? 1)
  const count = countElements(lengths)
  if (type === 'string' && count === 1 && lengths.length < 2) return "'text'"
  if (lengths.length === 0 || count > MAX_EXAMPLE_ELEMENTS) {
    if (type === 'bool') return 'true'
    return type === 'int64' || type === 'uint64' ? '0n' : '0'
  }
  const data =
    type === 'string' ? `Array(${count}).fill('text')` : `new ${getArrayName(type)}(${count})`
  return `{ data: ${data}, shape: [${lengths.join(', ')}] }`
}
