/** Builds the constraint of a whole answer from its reasoning, tools and format. */
import type { Constraint } from '../engine/constraint.ts'
import type { AnswerFormat, ToolUse } from '../types/index.ts'
import type { Marks } from './reasoning.ts'
import { callable, type ToolFormat, toolConstraint } from './tools/index.ts'

/** Text that the model writes before its answer. */
export type Before =
  /** No text: the model answers at once. */
  | { type: 'nothing' }
  /** A fixed text that the model is forced to write. */
  | { type: 'block'; text: string }
  /** Reasoning that the prompt has already opened. */
  | { type: 'begun'; marks: Marks }
  /** Reasoning that the model may write or omit. */
  | { type: 'free'; marks: Marks }

/**
 * Returns the constraint of an answer after its reasoning; `null` if any text is valid. A format
 * applies to the text of an answer that calls no tool.
 */
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

/**
 * Wraps a constraint in an open-ended one. A choice cannot mix open-ended and closed parts, and
 * calls without a frame are open-ended.
 */
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

/**
 * Returns the constraint of an answer together with the text before it; `null` if any text is
 * valid.
 */
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
