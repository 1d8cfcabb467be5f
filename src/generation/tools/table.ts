/**
 * The table of the formats in which models call tools. The grammar, the reader and the writer of a
 * format follow from its row.
 */
import type { FormatRow } from './frame.ts'
import { namedCall, objectCall } from './json.ts'
import { nestedCall } from './nested.ts'
import { pairsCall } from './pairs.ts'
import { pythonCall } from './python.ts'
import { taggedCall, type TagMarks } from './tagged.ts'

/** Call in the tags of Qwen3-Coder. A line break at each end of a value belongs to the format. */
const FUNCTION_TAGS = taggedCall({
  before: '<function=',
  afterName: '>',
  after: '\n</function>',
  argument: { before: '\n<parameter=', afterName: '>\n', after: '\n</parameter>' },
})

/** Section of Hermes and of the formats that come from it. */
const TOOL_CALL = {
  section: { trigger: '<tool_call>', lead: '\n', close: '\n</tool_call>' },
  between: '\n</tool_call>\n<tool_call>\n',
} satisfies Partial<FormatRow>

/** Rows of the two generations of DeepSeek V3, which read each other's calls. */
const DEEPSEEK = {
  section: { trigger: '<｜tool▁calls▁begin｜>', close: '<｜tool▁calls▁end｜>' },
} satisfies Partial<FormatRow>
const DEEPSEEK_MARKS = {
  begin: '<｜tool▁call▁begin｜>',
  marks: ['<｜tool▁sep｜>', '```json'],
  ends: ['```', '<｜tool▁call▁end｜>'],
  kinds: /^function$/,
}
const DEEPSEEK_FUNCTION = namedCall({
  ...DEEPSEEK_MARKS,
  before: '<｜tool▁call▁begin｜>function<｜tool▁sep｜>',
  between: '\n```json\n',
  after: '\n```<｜tool▁call▁end｜>',
})

const MISTRAL_ARGS = namedCall({
  before: '[TOOL_CALLS]',
  between: '[ARGS]',
  after: '',
  marks: ['[CALL_ID]'],
})

/** Returns the row of a format with the tags of DeepSeek V3.2 and V4. */
const dsml = (name: string, section: string): FormatRow => ({
  name,
  detect: ['｜DSML｜', section],
  section: {
    trigger: `<｜DSML｜${section}>`,
    lead: '\n',
    close: `\n</｜DSML｜${section}>`,
  },
  call: taggedCall({
    before: '<｜DSML｜invoke name="',
    afterName: '">',
    after: '\n</｜DSML｜invoke>',
    argument: {
      before: '\n<｜DSML｜parameter name="',
      afterName: '" string="true">',
      afterNameOfOther: '" string="false">',
      after: '</｜DSML｜parameter>',
    },
  }),
  between: '\n',
  markers: ['｜DSML｜'],
})

/** Returns the tags of GLM, whose names end with `suffix`. */
const argumentTags = (suffix = '', breaks = ''): TagMarks['argument'] => ({
  before: `${breaks}<arg_key${suffix}>`,
  afterName: `</arg_key${suffix}>${breaks}<arg_value${suffix}>`,
  after: `</arg_value${suffix}>`,
})

const PYTHON_MARKS = ['<|python_tag|>', '<|python_start|>', '<|python_end|>']
const LIST_MARKS = ['```json', '```python', '```']

/** Models without a format of their own are asked for this one. */
export const HERMES_ROW: FormatRow = {
  ...TOOL_CALL,
  name: 'hermes',
  // Other formats use the same tags around different content.
  detect: ['<tool_call>', /["']arguments\\?["']:/],
  call: objectCall({ name: 'name', arguments: 'arguments' }),
  other: FUNCTION_TAGS,
}

/** All rows, specific ones first: their templates may contain the marks of simpler formats. */
export const FORMAT_ROWS: readonly FormatRow[] = [
  {
    name: 'gpt-oss',
    detect: ['<|channel|>', '<|message|>', 'functions'],
    call: namedCall({
      before: '<|channel|>commentary to=functions.',
      between: ' <|constrain|>json<|message|>',
      after: '',
      marks: ['<|channel|>', '<|constrain|>', '<|message|>'],
      ends: ['<|call|>'],
    }),
    between: '',
    // The recipient may also stand before the channel, and calls may be a part of the analysis.
    triggers: [
      '<|channel|>commentary to=functions.',
      '<|channel|>analysis to=functions.',
      'to=functions.',
    ],
    // The token after a call ends the answer.
    isSingle: true,
  },
  {
    name: 'gemma',
    detect: ['<|tool_call>', '<tool_call|>'],
    section: { trigger: '<|tool_call>', close: '<tool_call|>' },
    call: pairsCall('call:', '<|"|>'),
    between: '<tool_call|><|tool_call>',
  },
  {
    name: 'minimax-m3',
    detect: [']<]minimax[>[', '<tool_call>'],
    section: {
      trigger: ']<]minimax[>[<tool_call>',
      lead: '\n',
      close: '\n]<]minimax[>[</tool_call>',
    },
    call: nestedCall(']<]minimax[>['),
    between: '\n',
    markers: [']<]minimax[>[', '<tool_call>', '</tool_call>'],
  },
  {
    name: 'lfm',
    detect: [/<\|tool_call_start\|>|List of tools: /],
    section: { trigger: '<|tool_call_start|>', lead: '[', close: ']<|tool_call_end|>' },
    call: pythonCall,
    between: ', ',
    fillers: LIST_MARKS,
  },
  dsml('deepseek-v3.2', 'function_calls'),
  dsml('deepseek-v4', 'tool_calls'),
  {
    ...DEEPSEEK,
    name: 'deepseek',
    detect: ['<｜tool▁call▁begin｜>', /```json|^(?![^]*<｜tool▁sep｜>)/],
    call: DEEPSEEK_FUNCTION,
    between: '\n',
  },
  {
    ...DEEPSEEK,
    name: 'deepseek-v3.1',
    detect: ['<｜tool▁call▁begin｜>', '<｜tool▁sep｜>'],
    call: namedCall({
      ...DEEPSEEK_MARKS,
      before: '<｜tool▁call▁begin｜>',
      between: '<｜tool▁sep｜>',
      after: '<｜tool▁call▁end｜>',
    }),
    between: '',
  },
  {
    name: 'kimi',
    detect: ['<|tool_calls_section_begin|>', '<|tool_call_argument_begin|>'],
    section: {
      trigger: '<|tool_calls_section_begin|>',
      close: '<|tool_calls_section_end|>',
    },
    call: namedCall({
      before: '<|tool_call_begin|>functions.',
      beforeNumber: ':',
      between: '<|tool_call_argument_begin|>',
      after: '<|tool_call_end|>',
      begin: '<|tool_call_begin|>',
    }),
    between: '',
  },
  {
    name: 'solar',
    detect: ['<|tool_call:begin|>', '<|tool_call:name|>'],
    section: { trigger: '<|tool_calls|>', close: '' },
    call: namedCall({
      before: '<|tool_call:begin|>0<|tool_call:name|>',
      between: '<|tool_call:args|>',
      after: '<|tool_call:end|>',
      begin: '<|tool_call:begin|>',
      marks: ['<|tool_call:name|>'],
      kinds: /^/,
    }),
    between: '',
  },
  {
    name: 'minimax',
    detect: ['<minimax:tool_call>', '<invoke name='],
    section: { trigger: '<minimax:tool_call>', lead: '\n', close: '\n</minimax:tool_call>' },
    call: taggedCall({
      before: '<invoke name="',
      afterName: '">',
      after: '\n</invoke>',
      argument: { before: '\n<parameter name="', afterName: '">', after: '</parameter>' },
    }),
    between: '\n',
  },
  {
    name: 'seed',
    detect: ['<seed:tool_call>', '<function=', '<parameter='],
    section: { trigger: '<seed:tool_call>', lead: '\n', close: '\n</seed:tool_call>' },
    call: taggedCall({
      before: '<function=',
      afterName: '>',
      after: '\n</function>',
      argument: { before: '\n<parameter=', afterName: '>', after: '</parameter>' },
    }),
    between: '\n</seed:tool_call>\n<seed:tool_call>\n',
  },
  {
    name: 'glm-compact',
    detect: ['</arg_key><arg_value>'],
    section: { trigger: '<tool_call>', close: '</tool_call>' },
    call: taggedCall({ before: '', afterName: '', after: '', argument: argumentTags() }),
    between: '</tool_call><tool_call>',
  },
  {
    name: 'hunyuan',
    detect: ['<tool_sep', '<arg_key', ':opensource'],
    section: {
      trigger: '<tool_calls:opensource>',
      lead: '\n',
      close: '\n</tool_calls:opensource>',
    },
    call: taggedCall({
      before: '<tool_call:opensource>',
      afterName: '<tool_sep:opensource>',
      after: '\n</tool_call:opensource>',
      argument: argumentTags(':opensource', '\n'),
    }),
    between: '\n',
  },
  {
    name: 'glm',
    detect: ['<arg_key>', '<arg_value>'],
    section: { trigger: '<tool_call>', close: '\n</tool_call>' },
    call: taggedCall({ before: '', afterName: '', after: '', argument: argumentTags('', '\n') }),
    between: '\n</tool_call>\n<tool_call>',
  },
  {
    name: 'functionary',
    detect: ['<function=example_function_name>{'],
    call: namedCall({ before: '<function=', between: '>', after: '</function>' }),
    between: '\n',
    triggers: ['<function='],
  },
  {
    name: 'functionary-v3.2',
    detect: ['>>>${recipient}', '>>>all'],
    call: namedCall({ before: '>>>', between: '\n', after: '' }),
    between: '',
    triggers: ['>>>'],
    textMark: '>>>all\n',
  },
  {
    name: 'minicpm',
    detect: ['<function name="', '<param name="'],
    call: taggedCall({
      before: '<function name="',
      afterName: '">',
      after: '</function>',
      argument: {
        before: '<param name="',
        afterName: '">',
        after: '</param>',
        verbatim: ['<![CDATA[', ']]>'],
      },
      tagsJson: true,
    }),
    between: '\n',
    triggers: ['<function name="'],
  },
  {
    name: 'command',
    detect: ['<|START_ACTION|>', 'tool_name'],
    section: { trigger: '<|START_ACTION|>', lead: '[\n    ', close: '\n]<|END_ACTION|>' },
    call: objectCall({ number: 'tool_call_id', name: 'tool_name', arguments: 'parameters' }),
    between: ',\n    ',
  },
  {
    name: 'command-plus',
    detect: ['Action:', '"tool_name"'],
    section: { trigger: 'Action:', lead: '\n```json\n[\n    ', close: '\n]```' },
    call: objectCall({ name: 'tool_name', arguments: 'parameters' }),
    between: ',\n    ',
    fillers: LIST_MARKS,
  },
  {
    name: 'apertus',
    detect: ['<|tools_prefix|>', '<|tools_suffix|>'],
    section: { trigger: '<|tools_prefix|>', lead: '[', close: ']<|tools_suffix|>' },
    call: objectCall({}),
    between: ', ',
  },
  {
    name: 'nemotron',
    detect: ['<TOOLCALL>'],
    section: { trigger: '<TOOLCALL>', lead: '[', close: ']</TOOLCALL>' },
    call: objectCall({ name: 'name', arguments: 'arguments' }),
    between: ', ',
  },
  {
    name: 'mistral-args',
    detect: ['[TOOL_CALLS]', '[ARGS]'],
    call: MISTRAL_ARGS,
    between: '',
    triggers: ['[TOOL_CALLS]'],
  },
  {
    name: 'mistral',
    detect: ['[TOOL_CALLS]'],
    // Their older tokenizers put a space before the list.
    section: { trigger: '[TOOL_CALLS]', lead: '[', leadPattern: ' ?\\[', close: ']' },
    call: objectCall({ name: 'name', arguments: 'arguments' }),
    between: ', ',
    other: MISTRAL_ARGS,
  },
  {
    name: 'phi',
    detect: [/<\|\/tool_call\|>|<\|\/tool\|>/],
    section: { trigger: '<|tool_call|>', lead: '[', close: ']<|/tool_call|>' },
    call: objectCall({ name: 'name', arguments: 'arguments' }),
    between: ', ',
  },
  {
    name: 'granite',
    detect: ['<|tool_call|>'],
    section: { trigger: '<|tool_call|>', lead: '[', close: ']' },
    call: objectCall({ name: 'name', arguments: 'arguments' }),
    between: ', ',
  },
  {
    name: 'tool-calls',
    detect: ['<tool_calls>', '</tool_calls>'],
    section: { trigger: '<tool_calls>', lead: '[', close: ']</tool_calls>' },
    call: objectCall({ name: 'name', arguments: 'arguments' }),
    between: ', ',
  },
  {
    ...TOOL_CALL,
    name: 'xml',
    detect: ['<tool_call>', '<function=', '<parameter='],
    call: FUNCTION_TAGS,
  },
  HERMES_ROW,
  {
    name: 'llama',
    detect: ['<|start_header_id|>', /"parameters\\?": /],
    call: objectCall({ name: 'name', arguments: 'parameters' }),
    other: pythonCall,
    between: '; ',
    triggers: ['{', '[', ...PYTHON_MARKS.slice(0, 2)],
    fillers: PYTHON_MARKS,
    markers: PYTHON_MARKS,
    exclusive: { textStart: '[^{\\[<\\n ]|<[^|]' },
  },
  {
    name: 'pythonic',
    detect: ['<|header_start|>'],
    call: pythonCall,
    between: ', ',
    isList: true,
    triggers: ['[', '{', ...PYTHON_MARKS.slice(0, 2)],
    fillers: PYTHON_MARKS,
    markers: PYTHON_MARKS,
    exclusive: { textStart: '[^{\\[<\\n ]|<[^|]' },
  },
]
