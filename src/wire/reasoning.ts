/** Reasoning fields of all styles, and their conversion to a token budget. */
import type * as v from 'valibot'
import {
  integerAtLeast,
  oneOf,
  optional,
  rejected,
  taggedUnion,
  type FieldConflict,
} from './fields.ts'

/** Reasoning tokens for each effort. The model worker caps them at half of its context. */
const BUDGET_TOKENS = {
  none: 0,
  minimal: 64,
  low: 256,
  medium: 1024,
  high: 4096,
  xhigh: Infinity,
  max: Infinity,
} as const

/** Reasoning effort, the name of a budget. */
export const effortField = optional(
  oneOf(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const),
)
/** Reasoning effort in the Anthropic style, which disables reasoning by another field. */
export const outputEffortField = optional(oneOf(['low', 'medium', 'high', 'xhigh', 'max'] as const))

const display = optional(oneOf(['summarized', 'omitted'] as const))

/** Field of the Anthropic style that enables reasoning and sets its budget. */
export const thinkingField = optional(
  taggedUnion('type', {
    disabled: {},
    enabled: { budget_tokens: integerAtLeast(1), display },
    adaptive: { display },
    between_tools: rejected,
  }),
)

/** Reasoning fields of a body of any style. */
export interface ReasoningFields {
  reasoning_effort?: v.InferOutput<typeof effortField>
  thinking?: v.InferOutput<typeof thinkingField>
  output_config?: { effort?: v.InferOutput<typeof outputEffortField> } | null | undefined
}

/** Reasoning settings of a request. */
export interface ReasoningSettings {
  /** Budget in tokens. `undefined`: the model's default. */
  budget: number | undefined
  /** `true` if the response contains the reasoning. Clients that did not ask may not expect it. */
  shown: boolean
  /** Fields that the budget comes from. */
  fields: string[]
  /** Fields that state another budget. They have no effect. */
  ignored: string[]
}

/** Returns the reasoning settings of a body. Disabled thinking wins over any effort. */
export function toReasoning({
  reasoning_effort: direct,
  thinking: config,
  output_config: output,
}: ReasoningFields): ReasoningSettings {
  const level = direct ?? output?.effort ?? undefined
  const budget = toBudget(config, level)
  const isOverridden = (requested: keyof typeof BUDGET_TOKENS | null | undefined): boolean =>
    Boolean(requested && BUDGET_TOKENS[requested] !== budget)
  return {
    budget,
    shown:
      (budget ?? 0) > 0 && !(config && config.type !== 'disabled' && config.display === 'omitted'),
    fields: [
      ...(direct ? ['reasoning_effort'] : []),
      ...(config ? ['thinking'] : []),
      ...(output?.effort ? ['output_config.effort'] : []),
    ],
    ignored: [
      ...(isOverridden(direct) ? ['reasoning_effort'] : []),
      ...(isOverridden(output?.effort) ? ['output_config.effort'] : []),
    ],
  }
}

function toBudget(
  config: ReasoningFields['thinking'],
  level: keyof typeof BUDGET_TOKENS | undefined,
): number | undefined {
  if (!config) return level && BUDGET_TOKENS[level]
  if (config.type === 'enabled') return config.budget_tokens
  return config.type === 'disabled' ? 0 : BUDGET_TOKENS[level ?? 'medium']
}

/** Returns the conflict between a reasoning budget and the limit of output tokens. */
export function findBudgetConflict(
  config: ReasoningFields['thinking'],
  maxTokens: number | null | undefined,
): FieldConflict | undefined {
  if (config?.type !== 'enabled' || !maxTokens) return undefined
  const { budget_tokens: input } = config
  if (input < maxTokens) return undefined
  const message = `less than the limit of output tokens, ${maxTokens}`
  return { path: ['thinking', 'budget_tokens'], message, input }
}
