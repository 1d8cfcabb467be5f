/** Checks that the steps of an output fit its parameter, and opens their labels. */
import type { Binding, Step } from '../catalog/schema.ts'
import type { ParameterType } from '../types/index.ts'
import { getLabelsSource, type LabelTable, toLabelsKey } from './labels.ts'
import type { OpenStep } from './steps.ts'

/** Throws `unavailable` that names a parameter. */
type Fail = (why: string) => never

/** Types of parameters that a last step returns; tensors keep their type. */
const RETURNED_TYPES: Partial<Record<Step['step'], readonly ParameterType[]>> = {
  'top-k': ['list'],
  ctc: ['string', 'list'],
  mask: ['image'],
}

/** Returns `true` if the last step of a binding returns no tensor. */
export const endsTensor = ({ steps = [] }: Binding): boolean =>
  RETURNED_TYPES[steps.at(-1)?.step ?? 'softmax'] !== undefined

/** Returns the steps with their labels. */
export function openSteps(
  { steps = [] }: Binding,
  type: ParameterType,
  labels: LabelTable,
  fail: Fail,
): OpenStep[] {
  return steps.map((step, index): OpenStep => {
    const returned = RETURNED_TYPES[step.step]
    if (returned && index < steps.length - 1) fail(`the step ${step.step} must be the last.`)
    if (returned && !returned.includes(type))
      fail(`is declared ${type}, but the step ${step.step} returns ${returned.join(' or ')}.`)
    const isFloat = type === 'float32' || type === 'float16'
    if (index === steps.length - 1 && !returned && !isFloat)
      fail(`is declared ${type}, but the step ${step.step} returns float32.`)
    const source = getLabelsSource(step)
    const names = source && (labels.get(toLabelsKey(source)) ?? fail('its labels are missing.'))
    return { step, labels: names ?? [] }
  })
}
