/** What an answer may be, put together from reasoning, tools and format. */
import type { Constraint } from '../engine/constraint.ts'
import type { AnswerFormat, ToolUse } from '../types/index.ts'
import type { Marks } from './reasoning.ts'
import { callable, type ToolFormat, toolConstraint } from './tools/index.ts'

/** What the model does before it answers. */
export type Before =
  /** It answers at once. */
  | { type: 'nothing' }
  /** It is made to write this. */
  | { type: 'block'; text: string }
  /** It reasons, as the prompt has begun to. */
  | { type: 'begun'; marks: Marks }
  /** It may reason. */
  | { type: 'free'; marks: Marks }

/** `null`: any text. A format holds for the text of an answer that calls no tool. */
export function answerConstraint(
  tools: { format: ToolFormat; use: ToolUse } | null,
  format: AnswerFormat | undefined,
): Constraint | null {
  const said = format ? formatConstraint(format) : null
  if (!tools || callable(tools.use).length === 0) return said
  if (!said || tools.use.choice === 'required') return toolConstraint(tools.format, tools.use)
  const calls = toolConstraint(tools.format, { ...tools.use, choice: 'required' })
  return { type: 'choice', parts: [calls, calls.type === 'tagged' ? said : openEnded(said)] }
}

/** The same; what may go on and what may not cannot be chosen from, and calls without a frame may. */
const openEnded = (part: Constraint): Constraint => ({
  type: 'separated',
  tags: [{ type: 'tagged', begin: '', content: part, end: '' }],
  separator: '\n',
  required: true,
  single: true,
})

function formatConstraint(format: AnswerFormat): Constraint {
  if (format.type === 'grammar') return format
  const schema = format.type === 'json_schema' ? format.schema : { type: 'object' }
  return { type: 'json', schema }
}

/** The answer with what comes before it; `null`: any text. */
export function wholeConstraint(before: Before, answer: Constraint | null): Constraint | null {
  if (before.type === 'block') {
    const text: Constraint = { type: 'constant', text: before.text }
    return { type: 'sequence', parts: [text, answer ?? { type: 'text' }] }
  }
  if (!answer || before.type === 'nothing') return answer
  const { open, close } = before.marks
  const reasoned: Constraint = {
    type: 'sequence',
    parts: [
      {
        type: 'tagged',
        begin: before.type === 'begun' ? '' : open,
        content: { type: 'text' },
        end: close,
      },
      { type: 'pattern', pattern: '\\n{0,2}' },
      answer,
    ],
  }
  return before.type === 'begun' ? reasoned : { type: 'choice', parts: [reasoned, answer] }
}
