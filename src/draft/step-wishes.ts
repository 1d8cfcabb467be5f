/** Adds the steps that an author wants to the outputs of a draft. */
import type { Binding, Labels, PredictorEntry, Step } from '../catalog/schema.ts'
import type { Folder } from './folder.ts'
import type { Item } from './items.ts'
import { refuse } from './refuse.ts'

/** Step without the names of its classes, which are stated apart. */
export type StepWish = Step extends infer One
  ? One extends Step
    ? Omit<One, 'labels'>
    : never
  : never

/** Steps and labels, by the names of the outputs. Errors name the options of the command line. */
export interface OutputWishes {
  steps: ReadonlyMap<string, readonly StepWish[]>
  labels: ReadonlyMap<string, Labels>
}

type Signature = PredictorEntry['signature']
type Output = Signature['outputs'][number]

/** Number of classes that `top-k` returns if it is not stated. */
const DEFAULT_COUNT = 5

/** Types of outputs whose last step returns no tensor. */
const RETURNED_TYPES: Partial<Record<Step['step'], Output['type']>> = {
  'top-k': 'list',
  ctc: 'list',
  mask: 'image',
}

const DESCRIPTIONS: Partial<Record<Step['step'], string>> = {
  'top-k': 'The best classes.',
  ctc: 'Texts with scores.',
  mask: 'A mask in gray.',
}

/** Changes the outputs and their bindings. Throws `invalid_request` for what does not fit. */
export function addSteps(
  { outputs }: Signature,
  bindings: Record<string, Binding>,
  states: ReadonlySet<string>,
  { steps, labels }: OutputWishes,
): void {
  for (const [name] of labels)
    if (!steps.has(name)) throw refuseLabels(name, 'the output has no step.')
  for (const [name, wishes] of steps) {
    const output = outputs.find((one) => one.name === name)
    if (!output) {
      const names = outputs.map((one) => one.name).join(', ')
      throw refuse(`--step ${name}: there is no such output.`, `Expected: ${names}.`)
    }
    if (output.type === 'string' || states.has(name)) {
      const why = output.type === 'string' ? 'has texts' : 'is a state'
      throw refuse(`--step ${name}: the output ${why}, so it can have no steps.`, 'Leave it out.')
    }
    const open = wishes.map((wish, index) =>
      toStep(name, wish, index === wishes.length - 1, labels),
    )
    if (labels.has(name) && !open.some((step) => 'labels' in step))
      throw refuseLabels(name, 'its steps take no labels.')
    const last = open.at(-1)?.step ?? 'softmax'
    output.type = RETURNED_TYPES[last] ?? 'float32'
    output.description = DESCRIPTIONS[last] ?? output.description
    bindings[name] = { tensor: name, ...bindings[name], steps: open }
  }
}

const refuseLabels = (name: string, why: string): Error =>
  refuse(`--labels ${name}: ${why}`, `Add --step ${name}=top-k or --step ${name}=ctc.`)

function toStep(
  name: string,
  wish: StepWish,
  isLast: boolean,
  labels: ReadonlyMap<string, Labels>,
): Step {
  if (!isLast && RETURNED_TYPES[wish.step])
    throw refuse(`--step ${name}: ${wish.step} must be the last step.`, 'Change the order.')
  const names = labels.get(name)
  if (wish.step === 'top-k')
    return { ...wish, count: wish.count ?? DEFAULT_COUNT, ...(names && { labels: names }) }
  if (wish.step !== 'ctc') return wish
  if (names) return { ...wish, labels: names }
  throw refuse(
    `--step ${name}: ctc needs the characters of the classes.`,
    `Name their file with --labels ${name}=characters.txt.`,
  )
}

/** Returns the files of the labels, which lie beside the graph. Throws `invalid_request`. */
export function labelItems(folder: Folder, graph: string, { labels }: OutputWishes): Item[] {
  const base = graph.slice(0, graph.lastIndexOf('/') + 1)
  const files = new Set([...labels.values()].flatMap((one) => ('file' in one ? [one.file] : [])))
  return Array.from(files, (name): Item => {
    const bytes = folder.sizeOf(base + name)
    if (bytes !== undefined) return { type: 'config', name, path: base + name, bytes }
    throw refuse(
      `--labels: there is no ${folder.nameOf(base + name)}.`,
      'Put the file beside the model, and name it relative to the folder of the model.',
    )
  })
}
