/** How much a model may think: the fields of all styles, and the budget they ask for. */
import type * as v from 'valibot'
import { atLeast, never, object, oneOf, optional, string, tagged } from './fields.ts'
import type { Fault } from './fields.ts'

/** Tokens of thought; the model worker lowers it to half of its context. */
const BUDGET = {
  none: 0,
  minimal: 64,
  low: 256,
  medium: 1024,
  high: 4096,
  xhigh: Infinity,
  max: Infinity,
} as const

/** How hard to think; the name of a budget. */
export const effort = optional(
  oneOf(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const),
)
/** The same in the messages style, which has other names for not thinking at all. */
export const outputEffort = optional(oneOf(['low', 'medium', 'high', 'xhigh', 'max'] as const))

const display = optional(oneOf(['summarized', 'omitted'] as const))

/** Whether to think, and how much: the messages style's own field. */
export const thinking = optional(
  tagged('type', {
    disabled: object({ type: string }),
    enabled: object({ type: string, budget_tokens: atLeast(1), display }),
    adaptive: object({ type: string, display }),
    between_tools: never,
  }),
)

/** What a body may say of it, whatever its style. */
export interface ReasoningFields {
  reasoning_effort?: v.InferOutput<typeof effort>
  thinking?: v.InferOutput<typeof thinking>
  output_config?: { effort?: v.InferOutput<typeof outputEffort> } | null | undefined
}

export interface Reasoning {
  /** As in a request. */
  budget: number | undefined
  /** Whether the client gets to see it: those that did not ask may not know what it is. */
  shown: boolean
  /** The fields that asked for it. */
  fields: string[]
  /** Of those, the ones that ask for another budget than the one that counts. */
  ignored: string[]
}

/** What is asked for. Thinking that is switched off stays so, whatever the effort. */
export function reasoningOf({
  reasoning_effort: direct,
  thinking: config,
  output_config: output,
}: ReasoningFields): Reasoning {
  const level = direct ?? output?.effort ?? undefined
  const budget = budgetOf(config, level)
  const isOther = (asked: keyof typeof BUDGET | null | undefined): boolean =>
    Boolean(asked && BUDGET[asked] !== budget)
  return {
    budget,
    shown: (budget ?? 0) > 0 && !(config && 'display' in config && config.display === 'omitted'),
    fields: [
      ...(direct ? ['reasoning_effort'] : []),
      ...(config ? ['thinking'] : []),
      ...(output?.effort ? ['output_config.effort'] : []),
    ],
    ignored: [
      ...(isOther(direct) ? ['reasoning_effort'] : []),
      ...(isOther(output?.effort) ? ['output_config.effort'] : []),
    ],
  }
}

function budgetOf(
  config: ReasoningFields['thinking'],
  level: keyof typeof BUDGET | undefined,
): number | undefined {
  if (!config) return level && BUDGET[level]
  if ('budget_tokens' in config) return config.budget_tokens
  return config.type === 'disabled' ? 0 : BUDGET[level ?? 'medium']
}

/** A budget that leaves nothing to the answer is a mistake. */
export function budgetFault(
  config: ReasoningFields['thinking'],
  most: number | null | undefined,
): Fault | undefined {
  if (!config || !('budget_tokens' in config) || !most) return undefined
  const { budget_tokens: input } = config
  if (input < most) return undefined
  const message = `less than the most tokens of the answer, ${most}`
  return { path: ['thinking', 'budget_tokens'], message, input }
}
