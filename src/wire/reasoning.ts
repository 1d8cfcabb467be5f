/** Reasoning fields of all styles, and their conversion to a token budget. */
import type * as v from 'valibot'
import { atLeast, never, object, oneOf, optional, string, tagged } from './fields.ts'
import type { Fault } from './fields.ts'

/** Reasoning tokens for each effort. The model worker caps them at half of its context. */
const BUDGET = {
  none: 0,
  minimal: 64,
  low: 256,
  medium: 1024,
  high: 4096,
  xhigh: Infinity,
  max: Infinity,
} as const

/** Reasoning effort, the name of a budget. */
export const effort = optional(
  oneOf(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const),
)
/** Reasoning effort in the Anthropic style, which disables reasoning by another field. */
export const outputEffort = optional(oneOf(['low', 'medium', 'high', 'xhigh', 'max'] as const))

const display = optional(oneOf(['summarized', 'omitted'] as const))

/** Field of the Anthropic style that enables reasoning and sets its budget. */
export const thinking = optional(
  tagged('type', {
    disabled: object({ type: string }),
    enabled: object({ type: string, budget_tokens: atLeast(1), display }),
    adaptive: object({ type: string, display }),
    between_tools: never,
  }),
)

/** Reasoning fields of a body of any style. */
export interface ReasoningFields {
  reasoning_effort?: v.InferOutput<typeof effort>
  thinking?: v.InferOutput<typeof thinking>
  output_config?: { effort?: v.InferOutput<typeof outputEffort> } | null | undefined
}

/** Reasoning settings of a request. */
export interface Reasoning {
  /** Budget in tokens. `undefined`: the model's default. */
  budget: number | undefined
  /** `true` if the response contains the reasoning. Clients that did not ask may not expect it. */
  shown: boolean
  /** Fields that the budget comes from. */
  fields: string[]
  /** Those fields that ask for another budget, and have no effect. */
  ignored: string[]
}

/** Returns the reasoning settings of a body. Disabled thinking wins over any effort. */
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

/** Returns the conflict between a reasoning budget and the limit of output tokens. */
export function budgetFault(
  config: ReasoningFields['thinking'],
  most: number | null | undefined,
): Fault | undefined {
  if (!config || !('budget_tokens' in config) || !most) return undefined
  const { budget_tokens: input } = config
  if (input < most) return undefined
  const message = `less than the limit of output tokens, ${most}`
  return { path: ['thinking', 'budget_tokens'], message, input }
}
