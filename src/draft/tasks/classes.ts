/** Drafts classifiers of texts, images and sounds: labels with scores, and scores of documents. */
import type { Labels, Step } from '../../catalog/schema.ts'
import { isObject } from '../../values/objects.ts'
import type { OnnxModel } from '../model.ts'
import { architectureOf, type Config, positive, type TaskFiles } from './files.ts'
import { type TaskDraft, withOutput } from './task-draft.ts'
import { findEntailment, withCandidates } from './zero-shot.ts'

const CLASSIFIER = /For(Sequence|Image|Audio)Classification(WithTeacher)?$/

/** Number of classes or tokens of a prediction that names none, as the pipelines of transformers have. */
export const DEFAULT_COUNT = 5

export const TOP_K = 'top_k'

/** Returns the optional input with the number of results. */
export const topKInput = (description: string, defaultValue: number) => ({
  name: TOP_K,
  type: 'int32' as const,
  description,
  optional: true,
  range: { min: 1 },
  defaultValue,
})

/** Returns the draft of a classifier; `null` if the graph is none. */
export function draftClasses(
  draft: TaskDraft,
  { outputs }: OnnxModel,
  files: TaskFiles,
): TaskDraft | null {
  const { config } = files
  const logits = outputs.find(({ name, shape }) => name === 'logits' && shape?.length === 2)
  if (!CLASSIFIER.test(architectureOf(config)) || !logits) return null
  const isKnown = Object.values(draft.bindings).some(
    ({ text, image, audio }) => text ?? image ?? audio,
  )
  if (!isKnown) return null
  const labels = listLabels(files, positive(logits.shape?.[1]))
  const isText = draft.bindings['text'] !== undefined
  const problem = config['problem_type']
  const isAlone = labels.length === 1
  const scores: Step[] =
    problem === 'regression'
      ? []
      : [{ step: problem === 'multi_label_classification' || isAlone ? 'sigmoid' : 'softmax' }]
  const paired = isText ? withPair(draft) : draft
  if (isText && isAlone) {
    const description = 'How well the second text fits the first, for each pair.'
    const drafted = withOutput(
      paired,
      { name: 'score', type: 'float32', description },
      { tensor: 'logits', ...(scores.length > 0 && { steps: scores }) },
    )
    return { ...drafted, rerank: { input: 'text', output: 'score' } }
  }
  const entailment = isText ? findEntailment(labels) : undefined
  const zeroShot = entailment === undefined ? null : withCandidates(paired, entailment)
  const count = Math.min(DEFAULT_COUNT, labels.length)
  const best: Step = {
    step: 'top-k',
    count,
    countInput: TOP_K,
    labels: toLabels(labels, config),
  }
  const drafted = withOutput(
    zeroShot?.draft ?? paired,
    { name: 'labels', type: 'list', description: 'The best classes with their scores.' },
    { tensor: 'logits', steps: [...(zeroShot ? [zeroShot.step] : []), ...scores, best] },
  )
  drafted.signature.inputs.push(
    topKInput(`Maximum number of classes to return, of ${labels.length}.`, count),
  )
  return drafted
}

/** Returns where the names of the classes are: in `config.json`, unless it lacks some of them. */
export function toLabels(names: readonly string[], config: Config): Labels {
  const named = isObject(config['id2label']) ? config['id2label'] : {}
  const isWhole =
    Object.keys(named).length === names.length && names.every((name, at) => named[at] === name)
  return isWhole ? { file: 'config.json', key: 'id2label' } : { names: [...names] }
}

/** Returns the names of the classes in order. Those without one are named as transformers does. */
export function listLabels({ config }: TaskFiles, classes: number | undefined): string[] {
  const named = isObject(config['id2label']) ? config['id2label'] : {}
  const indices = Object.keys(named).map(Number).filter(Number.isInteger)
  const stated = indices.length > 0 ? Math.max(...indices) + 1 : positive(config['num_labels'])
  const count = classes ?? stated ?? 2
  return Array.from({ length: count }, (_, index) => String(named[index] ?? `LABEL_${index}`))
}

/** Adds the optional second text of each pair. */
function withPair(draft: TaskDraft): TaskDraft {
  const binding = draft.bindings['text']
  if (!binding?.text) return draft
  const inputs = [
    ...draft.signature.inputs,
    {
      name: 'text_pair',
      type: 'string' as const,
      description: 'A second text, or a list of them, one for each text.',
      optional: true,
    },
  ]
  return {
    ...draft,
    signature: { ...draft.signature, inputs },
    bindings: {
      ...draft.bindings,
      text: { ...binding, text: { ...binding.text, pair: 'text_pair' } },
    },
  }
}
