/** Drafts models that score the tokens of a text: entities, answers to questions, masked tokens. */
import { ENTITY_MODES, type Step } from '../../catalog/step-schema.ts'
import { isObject } from '../../values/objects.ts'
import type { OnnxModel } from '../model.ts'
import { DEFAULT_COUNT, listLabels, TOP_K, toLabels, topKInput } from './classes.ts'
import { architectureOf, positive, type TaskFiles } from './files.ts'
import { type TaskDraft, withOutput } from './task-draft.ts'

/** Returns the draft of a model of tokens; `null` if the graph is none. */
export function draftTokens(
  draft: TaskDraft,
  model: OnnxModel,
  files: TaskFiles,
): TaskDraft | null {
  const [, task] =
    /For(TokenClassification|QuestionAnswering|MaskedLM)$/.exec(architectureOf(files.config)) ?? []
  if (draft.bindings['text']?.text === undefined) return null
  const has = (name: string, dimensions: number): boolean =>
    model.outputs.some((output) => output.name === name && output.shape?.length === dimensions)
  if (task === 'TokenClassification' && has('logits', 3)) return draftEntities(draft, model, files)
  if (task === 'MaskedLM' && has('logits', 3)) return draftMask(draft, files)
  const isAnswered = has('start_logits', 2) && has('end_logits', 2)
  return task === 'QuestionAnswering' && isAnswered ? draftAnswer(draft) : null
}

const MODE = 'aggregation_strategy'

function draftEntities(draft: TaskDraft, { outputs }: OnnxModel, files: TaskFiles): TaskDraft {
  const logits = outputs.find(({ name }) => name === 'logits')
  const labels = toLabels(listLabels(files, positive(logits?.shape?.at(-1))), files.config)
  const steps: Step[] = [
    { step: 'softmax' },
    { step: 'entities', labels, by: 'simple', byInput: MODE },
  ]
  const drafted = withOutput(
    draft,
    { name: 'entities', type: 'list', description: 'Parts of the text with their classes.' },
    { tensor: 'logits', steps },
  )
  drafted.signature.inputs.push({
    name: MODE,
    type: 'string',
    description: 'Way in which tokens become entities.',
    optional: true,
    enumeration: ENTITY_MODES.map((name) => ({ name, value: name })),
    defaultValue: 'simple',
  })
  return drafted
}

/** Numbers of tokens of the pipeline of transformers. */
const WINDOW = 384
const OVERLAP = 128

function draftAnswer(draft: TaskDraft): TaskDraft {
  const { text, ...others } = draft.bindings
  if (!text?.text) return draft
  const most = Math.min(WINDOW, text.text.most)
  const overlap = Math.min(Math.floor(most / 2), OVERLAP)
  const layout = { ...text.text, most, overlap, pair: 'context' }
  delete layout.truncate
  const inputs = draft.signature.inputs.flatMap((input) =>
    input.name === 'text'
      ? [
          { ...input, name: 'question', description: 'A question.' },
          { ...input, name: 'context', description: 'A text of any length that has the answer.' },
        ]
      : [input],
  )
  const asked: TaskDraft = {
    ...draft,
    signature: { ...draft.signature, inputs },
    bindings: { question: { ...text, text: layout }, ...others },
    notes: draft.notes.map((note) => note.replace('the input "text"', 'the input "question"')),
  }
  const description = 'Part of the context that answers the question, with its score.'
  return withOutput(
    asked,
    { name: 'answer', type: 'dict', description },
    { tensor: 'start_logits', steps: [{ step: 'span', end: 'end_logits' }] },
  )
}

function draftMask(draft: TaskDraft, { tokenizer }: TaskFiles): TaskDraft {
  const stated = tokenizer['mask_token']
  const mask = isObject(stated) ? stated['content'] : stated
  if (typeof mask !== 'string' || mask === '') return draft
  const description = `The best tokens for ${mask} in the text.`
  const steps: Step[] = [
    { step: 'softmax' },
    { step: 'fill-mask', mask, count: DEFAULT_COUNT, countInput: TOP_K },
  ]
  const drafted = withOutput(
    draft,
    { name: 'tokens', type: 'list', description },
    { tensor: 'logits', steps },
  )
  drafted.signature.inputs.push(topKInput('Maximum number of tokens to return.', DEFAULT_COUNT))
  return drafted
}
