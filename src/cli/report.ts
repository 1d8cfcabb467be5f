/** Formats the report of what the command did. */
import { relative, sep } from 'node:path'
import type { Binding, Entry, PredictorEntry } from '../catalog/schema.ts'
import { isSampleRate } from '../draft/wishes.ts'
import { ARRAYS, countElements } from '../values/elements.ts'
import type { AddResult } from './add.ts'
import { type ExampleShapes, MAX_EXAMPLE_ELEMENTS, SAMPLE_RATE_HZ } from './onnx/test-plan.ts'
import { toMemberName, toStringLiteral } from './commands/types.ts'
import type { InitResult } from './init.ts'
import { formatByteCount } from './output.ts'

export function formatAddReport(result: AddResult, { publicDir }: { publicDir: string }): string[] {
  const { entry, place, catalog, files, bytes, splitFiles, notes, shapes, isReady } = result
  const url = `/${relative(publicDir, catalog).split(sep).join('/')}`
  const what = entry.type === 'predictor' ? 'predictor' : 'chat model'
  const size = `${files} ${files === 1 ? 'file' : 'files'}, ${formatByteCount(bytes)}`
  const lines = [`Added the ${what} ${entry.tag}: ${size}, ${place}`]
  if (splitFiles.length > 0) lines.push(`Split into parts: ${splitFiles.join(', ')}`)
  const { inputs, outputs } = entry.type === 'predictor' ? entry.signature : {}
  for (const [side, parameters] of Object.entries({ inputs, outputs }))
    if (parameters) {
      const rows = parameters.map((one) => `  ${one.name}  ${one.type}  ${one.description ?? ''}`)
      lines.push('', `${side}:`, ...rows)
    }
  if (notes.length > 0) lines.push('', 'Please check:', ...notes.map((note) => `- ${note}`))
  lines.push('', `Its entry is in ${catalog}. You can edit it.`)
  if (!isReady) lines.push(`The runtime is missing: run \`npx inorigin init ${publicDir}\`.`)
  const code = createSnippet(entry, url, shapes).split('\n')
  return [...lines, '', 'In your page:', '', ...code.map((line) => line && `  ${line}`)]
}

export function formatInitReport(
  result: InitResult,
  { version, sw, isRemembered }: { version: string; sw: string | false; isRemembered: boolean },
): string[] {
  const { script, folder, files, bytes, removed } = result
  const written = script === null ? '' : `${script} and `
  const removedFiles = removed.length === 1 ? '1 file that is' : `${removed.length} files that are`
  return [
    `inorigin ${version}: wrote ${written}${folder}${sep}, ${files} files, ${formatByteCount(bytes)}.`,
    ...(removed.length > 0 ? [`Removed ${removedFiles} no longer needed.`] : []),
    isRemembered
      ? 'package.json remembers the folder: `inorigin init` refreshes it after an update.'
      : 'There is no package.json here to remember the folder. Name it again after an update.',
    `In your page: ${sw === 'sw.js' ? 'await serve()' : `await serve({ worker: '/${sw || '<your worker>'}' })`}`,
  ]
}

/**
 * Returns the code of a page's script.
 *
 * @param catalog URL of the app's catalog.
 * @param shapes Shapes of tensors with which the model ran. Other free dimensions are 1.
 */
export function createSnippet(
  entry: Entry,
  catalog: string,
  shapes: ExampleShapes = new Map(),
): string {
  const lines =
    entry.type === 'model'
      ? createChatLines(entry.tag)
      : entry.embeddings
        ? createEmbedLines(entry.tag)
        : entry.rerank
          ? createRerankLines(entry.tag)
          : entry.speech
            ? createSpeechLines(entry.tag)
            : createPredictLines(entry, shapes)
  const serving = `const server = await serve({ catalog: '${catalog}' })`
  return ["import { serve } from 'inorigin'", '', serving, ...lines].join('\n')
}

const createChatLines = (tag: string): string[] => [
  "const response = await fetch('/v1/chat/completions', {",
  "  method: 'POST',",
  "  headers: { 'content-type': 'application/json' },",
  `  body: JSON.stringify({ model: '${tag}', messages: [{ role: 'user', content: 'Hello' }] }),`,
  '})',
  'console.log((await response.json()).choices[0].message.content)',
]

const createEmbedLines = (tag: string): string[] => [
  "const response = await fetch('/v1/embeddings', {",
  "  method: 'POST',",
  "  headers: { 'content-type': 'application/json' },",
  `  body: JSON.stringify({ model: '${tag}', input: ['A text', 'Another one'] }),`,
  '})',
  'console.log((await response.json()).data[0].embedding)',
]

const createRerankLines = (tag: string): string[] => [
  "const response = await fetch('/v1/rerank', {",
  "  method: 'POST',",
  "  headers: { 'content-type': 'application/json' },",
  `  body: JSON.stringify({ model: '${tag}', query: 'A question', documents: ['A text', 'Another'] }),`,
  '})',
  'console.log((await response.json()).results[0].relevance_score)',
]

const createSpeechLines = (tag: string): string[] => [
  "const response = await fetch('/v1/audio/speech', {",
  "  method: 'POST',",
  "  headers: { 'content-type': 'application/json' },",
  `  body: JSON.stringify({ model: '${tag}', input: 'A text to speak.', voice: 'default' }),`,
  '})',
  'await new Audio(URL.createObjectURL(await response.blob())).play()',
]

function createPredictLines(
  { tag, signature, states = [], implementations }: PredictorEntry,
  shapes: ExampleShapes,
): string[] {
  const { bindings = {}, decoder } = implementations[0] ?? {}
  const { source, target, names = [] } = decoder?.languages ?? {}
  const given = signature.inputs.filter(
    ({ name, optional }) => !optional && !states.some(({ input }) => input === name),
  )
  const inputs = given.map((parameter) => {
    const binding = bindings[parameter.name]
    const tried = shapes.get(binding?.tensor ?? parameter.name)
    if (parameter.name === source || parameter.name === target)
      return `  ${parameter.name}: ${toStringLiteral(names[0] ?? '')},`
    return `  ${toMemberName(parameter.name)}: ${createExample(parameter, binding, tried)},`
  })
  const nextStates = new Set(states.map(({ output }) => output))
  const first = signature.outputs.find(({ name }) => !nextStates.has(name))?.name ?? ''
  const output = toMemberName(first) === first ? `.${first}` : `[${toStringLiteral(first)}]`
  const [session, callee] =
    states.length > 0
      ? [[`const session = await server.session('${tag}')`], 'session.predict(']
      : [[], `server.predict('${tag}', `]
  const call = `const { outputs } = await ${callee}{`
  return [...session, call, ...inputs, '})', `console.log(outputs${output})`]
}

function createExample(
  { name, type }: PredictorEntry['signature']['inputs'][number],
  binding: Binding | undefined,
  tried: readonly number[] | undefined,
): string {
  if (type === 'image') return 'document.images[0]'
  if (binding?.text) return "'text'"
  if (binding?.audio) return `new Float32Array(${binding.audio.window ?? binding.audio.rate})`
  const shape = binding?.shape ?? tried ?? []
  const lengths = shape.map((length, index) => length ?? tried?.[index] ?? 1)
  const count = countElements(lengths)
  if (type === 'string' && count === 1 && lengths.length < 2) return "'text'"
  if (lengths.length === 0 || count > MAX_EXAMPLE_ELEMENTS) return createNumber(name, type)
  return `{ data: ${createData(name, type, count)}, shape: [${lengths.join(', ')}] }`
}

function createNumber(name: string, type: string): string {
  if (type === 'bool') return 'true'
  const number = isSampleRate(name, type) ? SAMPLE_RATE_HZ : 0
  return type === 'int64' || type === 'uint64' ? `${number}n` : `${number}`
}

function createData(name: string, type: string, count: number): string {
  if (type === 'string') return `Array(${count}).fill('text')`
  // Half floats use `Float32Array`.
  const { name: constructor } =
    ARRAYS[type === 'float16' ? 'float32' : (type as keyof typeof ARRAYS)]
  const array = `new ${constructor}(${count})`
  return isSampleRate(name, type) ? `${array}.fill(${createNumber(name, type)})` : array
}
