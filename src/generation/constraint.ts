/** Builds the constraint of a whole answer from its reasoning, tools and format. */
import type { Constraint } from '../constraint/index.ts'
import type { AnswerFormat, ToolUse } from '../types/index.ts'
import type { ReasoningTags } from './reasoning.ts'
import { callableTools, toolConstraint, type ToolFormat } from './tools/index.ts'

/** Text that the model writes before its answer. */
export type ReasoningPrefix =
  /** No text: the model answers at once. */
  | { type: 'nothing' }
  /** A fixed text that the model is forced to write. */
  | { type: 'block'; text: string }
  /** Reasoning that the prompt has already opened. */
  | { type: 'open'; tags: ReasoningTags }
  /** Reasoning that the model may write or omit. */
  | { type: 'free'; tags: ReasoningTags }

/**
 * Returns the constraint of an answer after its reasoning; `null` if any text is valid. A format
 * applies to the text of an answer that calls no tool.
 */
export function completionConstraint(
  tools: { format: ToolFormat; use: ToolUse } | null,
  format: AnswerFormat | undefined,
): Constraint | null {
  const formatOnly = format ? formatConstraint(format) : null
  if (!tools || callableTools(tools.use).length === 0) return formatOnly
  if (!formatOnly || tools.use.choice === 'required') return toolConstraint(tools.format, tools.use)
  const calls = toolConstraint(tools.format, { ...tools.use, choice: 'required' })
  return {
    type: 'choice',
    parts: [calls, calls.type === 'tagged' ? formatOnly : toOpenEnded(formatOnly)],
  }
}

/**
 * Wraps a constraint in an open-ended one. A choice cannot mix open-ended and closed parts, and
 * calls without a frame are open-ended.
 */
const toOpenEnded = (part: Constraint): Constraint => ({
  type: 'separated',
  tags: [{ type: 'tagged', begin: '', content: part, end: '' }],
  separator: '\n',
  required: true,
  single: true,
})

function formatConstraint(format: AnswerFormat): Constraint {
  switch (format.type) {
    case 'json_object':
      return { type: 'json', schema: { type: 'object' } }
    case 'json_schema': {
      const { schema, strict } = format
      return { type: 'json', schema, ...(strict && { strict }), path: 'format.schema' }
    }
    case 'regex':
      return { ...format, type: 'pattern' }
    case 'choice':
      return { type: 'choice', parts: format.choices.map((text) => ({ type: 'constant', text })) }
    case 'grammar':
      return format
  }
}

/**
 * Returns the constraint of an answer together with the text before it; `null` if any text is
 * valid.
 */
export function withReasoningPrefix(
  prefix: ReasoningPrefix,
  completion: Constraint | null,
): Constraint | null {
  if (prefix.type === 'block') {
    const text: Constraint = { type: 'constant', text: prefix.text }
    return { type: 'sequence', parts: [text, completion ?? { type: 'text' }] }
  }
  if (!completion || prefix.type === 'nothing') return completion
  const { open, close } = prefix.tags
  const withReasoning: Constraint = {
    type: 'sequence',
    parts: [
      {
        type: 'tagged',
        begin: prefix.type === 'open' ? '' : open,
        content: { type: 'text' },
        end: close,
      },
      { type: 'pattern', pattern: '\\n{0,2}' },
      completion,
    ],
  }
  return prefix.type === 'open'
    ? withReasoning
    : { type: 'choice', parts: [withReasoning, completion] }
}
