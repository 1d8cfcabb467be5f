/** Drafts models that answer with parts of an image, or with another one: objects, masks, depth. */
import type { PredictorEntry, Step } from '../../catalog/schema.ts'
import type { OnnxModel } from '../model.ts'
import { listLabels, toLabels } from './classes.ts'
import { architectureOf, positive, type TaskFiles } from './files.ts'
import { type TaskDraft, withOutput } from './task-draft.ts'

/** Returns the draft of a model of images that makes more than classes; `null` if the graph is none. */
export function draftPictures(
  draft: TaskDraft,
  model: OnnxModel,
  files: TaskFiles,
): TaskDraft | null {
  if (!Object.values(draft.bindings).some(({ image }) => image)) return null
  const architecture = architectureOf(files.config)
  const sizes = new Map(model.outputs.map(({ name, shape }) => [name, shape?.length]))
  if (
    architecture.endsWith('ForObjectDetection') &&
    sizes.get('logits') === 3 &&
    sizes.has('pred_boxes')
  )
    return draftObjects(draft, model, files)
  if (architecture.endsWith('ForSemanticSegmentation') && sizes.get('logits') === 4)
    return draftSegments(draft, model, files)
  const panoptic = PANOPTIC.find(
    ({ name, classes, masks }) => name.test(architecture) && sizes.has(classes) && sizes.has(masks),
  )
  if (panoptic) return draftPanoptic(draft, model, files, panoptic)
  if (DEPTH.test(architecture) && sizes.has('predicted_depth')) return draftDepth(draft)
  return draftCutout(draft, model, architecture)
}

/** Returns the numbers of classes that a tensor scores. */
const classesOf = ({ outputs }: OnnxModel, tensor: string): number | undefined =>
  positive(outputs.find(({ name }) => name === tensor)?.shape?.at(-1))

/** Returns the names of classes, of which a graph has one more: that of no object. */
function labelsBeside(model: OnnxModel, tensor: string, files: TaskFiles, others: number) {
  const classes = classesOf(model, tensor)
  return toLabels(listLabels(files, classes && classes - others), files.config)
}

const THRESHOLD = 'threshold'

/** Adds the optional input that changes from which score on something is found. */
function addThreshold({ signature }: TaskDraft, defaultValue: number): void {
  signature.inputs.push({
    name: THRESHOLD,
    type: 'float32',
    description: 'Score above which something counts as found.',
    optional: true,
    range: { min: 0, max: 1 },
    defaultValue,
  })
}

/** Detectors that score each class on its own, in place of one more class for no object. */
const SEVERAL_CLASSES = /^(RTDetr|RTDetrV2|DFine|RfDetr|LwDetr)For/
/** The same, of which transformers keeps this number of objects. */
const HUNDRED = /^(Conditional|Deformable|Dab)DetrFor/
const MOST_OBJECTS = 100

const OBJECT_THRESHOLD = 0.5

function draftObjects(draft: TaskDraft, model: OnnxModel, files: TaskFiles): TaskDraft {
  const architecture = architectureOf(files.config)
  const isHundred = HUNDRED.test(architecture)
  const isSeveral = isHundred || SEVERAL_CLASSES.test(architecture)
  const labels = labelsBeside(model, 'logits', files, isSeveral ? 0 : 1)
  const objects: Step = {
    step: 'objects',
    boxes: 'pred_boxes',
    labels,
    ...(!isSeveral && { background: true }),
    ...(isHundred && { count: MOST_OBJECTS }),
    thresholdInput: THRESHOLD,
  }
  const drafted = withOutput(
    draft,
    { name: 'objects', type: 'list', description: 'Objects with their boxes in pixels.' },
    { tensor: 'logits', steps: [{ step: isSeveral ? 'sigmoid' : 'softmax' }, objects] },
  )
  addThreshold(drafted, OBJECT_THRESHOLD)
  return drafted
}

function draftSegments(draft: TaskDraft, { outputs }: OnnxModel, files: TaskFiles): TaskDraft {
  const logits = outputs.find(({ name }) => name === 'logits')
  const names = listLabels(files, positive(logits?.shape?.[1]))
  return withOutput(draft, SEGMENTS, {
    tensor: 'logits',
    steps: [{ step: 'segments', labels: toLabels(names, files.config) }],
  })
}

const SEGMENTS: PredictorEntry['signature']['outputs'][number] = {
  name: 'segments',
  type: 'list',
  description: 'Parts of the image with their masks.',
}

/** Models of masks with their tensors. */
const PANOPTIC = [
  {
    name: /^MaskFormerFor/,
    classes: 'class_queries_logits',
    masks: 'masks_queries_logits',
  },
  { name: /^DetrForSegmentation$/, classes: 'logits', masks: 'pred_masks' },
] as const

const MASK_THRESHOLD = 0.9

function draftPanoptic(
  draft: TaskDraft,
  model: OnnxModel,
  files: TaskFiles,
  { classes, masks }: (typeof PANOPTIC)[number],
): TaskDraft {
  const labels = labelsBeside(model, classes, files, 1)
  const drafted = withOutput(draft, SEGMENTS, {
    tensor: classes,
    steps: [{ step: 'softmax' }, { step: 'panoptic', masks, labels, thresholdInput: THRESHOLD }],
  })
  addThreshold(drafted, MASK_THRESHOLD)
  return drafted
}

const DEPTH = /^(DPT|DepthAnything|GLPN)ForDepthEstimation$/

function draftDepth(draft: TaskDraft): TaskDraft {
  const tensor = 'predicted_depth'
  const resize: Step = { step: 'resize', by: 'bicubic' }
  const drafted = withOutput(
    draft,
    { name: 'depth', type: 'image', description: 'The depth as brightness.' },
    { tensor, steps: [resize, { step: 'depth' }] },
  )
  drafted.signature.outputs.push({
    name: tensor,
    type: 'float32',
    description: 'The depth of each pixel of the image, as the model measures it.',
  })
  drafted.bindings[tensor] = { tensor, steps: [resize] }
  return drafted
}

/** Models whose one channel says how opaque each pixel of what is cut out is. */
const CUTOUT = /BiRefNet|RMBG|MODNet|IS-?Net|BEN|U2-?Net|InSPyReNet|ormbg/i
/** Names of that channel. */
const OPACITIES = ['alphas', 'alpha']

function draftCutout(
  draft: TaskDraft,
  { outputs, operators }: OnnxModel,
  architecture: string,
): TaskDraft | null {
  const [first, ...others] = outputs.filter(({ shape }) => shape?.length === 4)
  const named = outputs.find(({ name }) => OPACITIES.includes(name))
  const value = named ?? (CUTOUT.test(architecture) && others.length === 0 ? first : undefined)
  const channels = value?.shape?.[1]
  if (!value || value.shape?.length !== 4 || (typeof channels === 'number' && channels !== 1))
    return null
  // A graph that does not end with probabilities leaves them to its caller.
  const isOpacity = named !== undefined || operators.get(value.name) === 'Sigmoid'
  return withOutput(
    draft,
    { name: 'cutout', type: 'image', description: 'The image without its background.' },
    {
      tensor: value.name,
      steps: [
        ...(isOpacity ? [] : [{ step: 'sigmoid' } as const]),
        { step: 'resize', by: 'bilinear' },
        { step: 'cutout' },
      ],
    },
  )
}
