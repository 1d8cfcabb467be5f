/** Parses the options of `inorigin add` that turn outputs into what a person reads. */
import type { Labels } from '../../catalog/schema.ts'
import type { StepWish } from '../../draft/step-wishes.ts'
import { createUsageError } from '../usage.ts'
import { parseName, parsePair } from './flag-values.ts'

/** Settings of each step: whole numbers, numbers and flags. */
const SETTINGS: Readonly<Record<StepWish['step'], Readonly<Record<string, RegExp>>>> = {
  softmax: {},
  sigmoid: {},
  'top-k': { count: /^[1-9]\d{0,8}$/, threshold: /^-?\d+(\.\d+)?$/ },
  ctc: { blank: /^\d{1,9}$/, space: /^$/ },
  mask: { threshold: /^-?\d+(\.\d+)?$/ },
}

const STEPS = Object.keys(SETTINGS) as StepWish['step'][]

/** Parses `output=step,setting=value` into the steps of each output. Throws a usage error. */
export function parseStepFlags(texts: readonly string[] = []): Map<string, StepWish[]> {
  const steps = new Map<string, StepWish[]>()
  for (const text of texts) {
    const [output, written] = parsePair('--step', text, 'output=step, such as y=softmax')
    steps.set(output, [...(steps.get(output) ?? []), parseStep(written)])
  }
  return steps
}

function parseStep(text: string): StepWish {
  const [name = '', ...settings] = text.split(',')
  const step = parseName('--step', name, STEPS)
  const known = SETTINGS[step]
  const parsed = settings.map((setting): [string, number | true] => {
    const [key = '', value = ''] = setting.split('=')
    const form = Object.hasOwn(known, key) ? known[key] : undefined
    if (form?.test(value)) return [key, value === '' ? true : Number(value)]
    const names = Object.keys(known).join(', ') || 'no settings'
    const wanted = form ? 'has an invalid value' : `is unknown: ${step} takes ${names}`
    throw createUsageError(`--step ${text}: ${setting} ${wanted}`)
  })
  return { step, ...Object.fromEntries(parsed) } as StepWish
}

/** Parses `output=file` and `output=metadata:key`. Throws a usage error. */
export function parseLabelFlags(texts: readonly string[] = []): Map<string, Labels> {
  return new Map(
    texts.map((text) => {
      const [output, source] = parsePair('--labels', text, 'output=file, such as y=labels.txt')
      const key = /^metadata:(.+)$/.exec(source)?.[1]
      return [output, key === undefined ? { file: source } : { metadata: key }]
    }),
  )
}
