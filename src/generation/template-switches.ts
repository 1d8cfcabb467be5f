/** Chooses the variables of a chat template that a request states, such as the reasoning effort. */
import { templateTraits } from '../engine/text/template-traits.ts'
import type { GenerationRequest, ReasoningEffort } from '../types/index.ts'

/** Returns `true` if a chat template reads a variable. */
const reads = (template: string | null, name: string): boolean =>
  template !== null && templateTraits(template).names.has(name)

/** Returns `true` if a chat template reads whether the model is to reason. */
export const readsThinking = (template: string | null): boolean =>
  reads(template, 'enable_thinking')

/**
 * Returns the variables of a chat template that a request states. The effort and the budget are
 * passed only to a template that reads them. A budget without a limit is not passed.
 */
export function toTemplateSwitches(
  { reasoningEffort: effort, reasoningBudget: budget, templateVariables }: GenerationRequest,
  template: string | null,
): Record<string, unknown> {
  const hasBudget = budget !== undefined && Number.isFinite(budget)
  return {
    ...(effort &&
      reads(template, 'reasoning_effort') && {
        reasoning_effort: toEffort(effort, template ?? ''),
      }),
    ...(hasBudget && reads(template, 'thinking_budget') && { thinking_budget: budget }),
    ...templateVariables,
  }
}

/** Returns the effort, or the nearest of the three usual ones if a template does not name it. */
function toEffort(effort: ReasoningEffort, template: string): ReasoningEffort {
  if (new RegExp(`['"]${effort}['"]`).test(template)) return effort
  if (effort === 'none' || effort === 'minimal') return 'low'
  return effort === 'xhigh' || effort === 'max' ? 'high' : effort
}

/** Returns the fields of a request for variables that its chat template does not read. */
export const findUnread = (
  { templateVariables = {} }: GenerationRequest,
  template: string | null,
): string[] =>
  Object.keys(templateVariables)
    .filter((name) => !reads(template, name))
    .map((name) => `templateVariables.${name}`)
