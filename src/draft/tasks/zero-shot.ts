/** Drafts models that find which labels of a prediction fit: to a text by its pairs, or to an image. */
import type { Step } from '../../catalog/schema.ts'
import { isObject } from '../../values/objects.ts'
import type { OnnxModel } from '../model.ts'
import type { TaskFiles } from './files.ts'
import { type TaskDraft, withOutput } from './task-draft.ts'

const LABELS = 'candidate_labels'
const TEMPLATE = 'hypothesis_template'
const SEVERAL = 'multi_label'

const toTemplate = (defaultValue: string) => ({
  name: TEMPLATE,
  type: 'string' as const,
  description: 'A text in which {} stands for each label.',
  optional: true,
  defaultValue,
})

/** Returns the class which says that the second text follows from the first; `undefined` without one. */
export const findEntailment = (names: readonly string[]): number | undefined => {
  const found = names.findIndex((name) => name.toLowerCase().startsWith('entail'))
  return found < 0 ? undefined : found
}

/** Returns the draft of a classifier of pairs that also takes labels, and the step that ranks them. */
export function withCandidates(
  draft: TaskDraft,
  entailment: number,
): { draft: TaskDraft; step: Step } {
  const { text, ...others } = draft.bindings
  const inputs = [
    ...draft.signature.inputs,
    {
      name: LABELS,
      type: 'list' as const,
      description: 'Labels, of which the fitting ones are found.',
      optional: true,
    },
    toTemplate('This example is {}.'),
    {
      name: SEVERAL,
      type: 'bool' as const,
      description: 'Whether several labels may fit, each with a probability of its own.',
      optional: true,
      defaultValue: false,
    },
  ]
  const step: Step = { step: 'zero-shot', entailment, severalInput: SEVERAL }
  if (!text?.text) return { draft, step }
  const layout = { ...text.text, labels: LABELS, template: TEMPLATE }
  return {
    draft: {
      ...draft,
      signature: { ...draft.signature, inputs },
      bindings: { text: { ...text, text: layout }, ...others },
    },
    step,
  }
}

/** Number of tokens that the pipeline of transformers fills the texts of SigLIP up to. */
const SIGLIP_LENGTH = 64

/** Padding token of SigLIP, whose configuration leaves it out if it is this one. */
const SIGLIP_PAD = 1

/** Returns the draft of a model that compares images with texts; `null` if the graph is none. */
export function draftImageLabels(
  draft: TaskDraft,
  { outputs }: OnnxModel,
  { config }: TaskFiles,
): TaskDraft | null {
  const { text, ...others } = draft.bindings
  const isPair = outputs.some(
    ({ name, shape }) => name === 'logits_per_image' && shape?.length === 2,
  )
  if (!isPair || !text?.text || !others['pixel_values']?.image) return null
  const isSiglip = String(config['model_type']).includes('siglip')
  const own = isObject(config['text_config']) ? config['text_config'] : {}
  const stated = own['pad_token_id']
  const ownPad = typeof stated === 'number' && stated >= 0 ? stated : SIGLIP_PAD
  const pad = isSiglip ? ownPad : text.text.pad
  const layout = {
    ...text.text,
    template: TEMPLATE,
    ...(pad !== undefined && { pad }),
    ...(isSiglip && { length: Math.min(SIGLIP_LENGTH, text.text.most) }),
  }
  const named = draft.signature.inputs.filter(({ name }) => name !== 'text')
  const labels = {
    name: LABELS,
    type: 'list' as const,
    description: 'Labels, of which the fitting ones are found.',
  }
  const inputs = [...named, labels, toTemplate('This is a photo of {}.')]
  const asked: TaskDraft = {
    ...draft,
    signature: { ...draft.signature, inputs },
    bindings: { ...others, [LABELS]: { ...text, text: layout } },
    notes: draft.notes.map((note) => note.replace('the input "text"', `the input "${LABELS}"`)),
  }
  const steps: Step[] = [{ step: isSiglip ? 'sigmoid' : 'softmax' }, { step: 'zero-shot' }]
  return withOutput(
    asked,
    { name: 'labels', type: 'list', description: 'The labels with their scores.' },
    { tensor: 'logits_per_image', steps },
  )
}
