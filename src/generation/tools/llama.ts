import type { Constraint } from '../../engine/constraint.ts'
import type { Tool } from '../../types/index.ts'
import { jsonTag, sequence, type Sink, type ToolFormat, writeJson } from './format.ts'
import { readObject } from './json.ts'
import { type Reading, type Source, space, take } from './reading.ts'

const OPEN = '{'
const PYTHON = '<|python_tag|>'

/**
 * The format of Llama 3.1 to 3.3: JSON objects and nothing else, separated by `; `. They may follow
 * `<|python_tag|>`. Text, if it is allowed, begins with neither.
 */
export const llama: ToolFormat = {
  name: 'llama',
  detect: (template) =>
    template.includes('<|start_header_id|>') && /"parameters\\?": /.test(template),
  markers: [PYTHON],
  triggers: [OPEN, PYTHON],
  alone: true,
  forced,
  free: (tools, parallel) => ({
    type: 'choice',
    parts: [
      forced(tools, parallel),
      sequence({ type: 'grammar', grammar: 'root ::= [^{<\\n ] | "<" [^|]' }, { type: 'text' }),
    ],
  }),
  read,
  write: (calls) => calls.map(writeJson('parameters')).join('; '),
}

function forced(tools: readonly Tool[], parallel: boolean): Constraint {
  return {
    type: 'separated',
    tags: tools.map(jsonTag('parameters')),
    separator: '; ',
    required: true,
    single: !parallel,
  }
}

function* read(source: Source, sink: Sink, trigger: string): Reading<boolean> {
  if (trigger === OPEN) source.at -= OPEN.length
  do {
    yield* space(source)
    yield* take(source, PYTHON)
    yield* space(source)
    if (!(yield* readObject(source, sink))) return false
    yield* space(source)
  } while (yield* take(source, ';'))
  return true
}
