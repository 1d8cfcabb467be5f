import type { Constraint } from '../../constraint/index.ts'
import {
  type CallableTool,
  type CallSink,
  jsonCallTag,
  sequence,
  type ToolFormat,
  writeJsonCall,
} from './format.ts'
import { readObject } from './json.ts'
import { consume, type Reader, skipSpace, type Source } from './reader.ts'

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
  isExclusive: true,
  callsConstraint: toCallsConstraint,
  textOrCallsConstraint: (tools, parallel) => ({
    type: 'choice',
    parts: [
      toCallsConstraint(tools, parallel),
      sequence({ type: 'pattern', pattern: '[^{<\\n ]|<[^|]' }, { type: 'text' }),
    ],
  }),
  read: readCalls,
  write: (calls) => calls.map(writeJsonCall('parameters')).join('; '),
}

function toCallsConstraint(tools: readonly CallableTool[], parallel: boolean): Constraint {
  return {
    type: 'separated',
    tags: tools.map(jsonCallTag('parameters')),
    separator: '; ',
    required: true,
    single: !parallel,
  }
}

function* readCalls(source: Source, sink: CallSink, trigger: string): Reader<boolean> {
  if (trigger === OPEN) source.at -= OPEN.length
  do {
    yield* skipSpace(source)
    yield* consume(source, PYTHON)
    yield* skipSpace(source)
    if (!(yield* readObject(source, sink))) return false
    yield* skipSpace(source)
  } while (yield* consume(source, ';'))
  return true
}
