/** Checks that the steps of outputs fit the shapes that a model returned when it was tried. */
import type { Binding, Labels } from '../../catalog/schema.ts'
import { refuse } from '../../draft/refuse.ts'
import { readMetadata } from '../../engine/onnx/metadata.ts'
import { getLabelsSource } from '../../predictor/labels.ts'
import { applySteps, type OpenStep } from '../../predictor/steps.ts'
import { countElements } from '../../values/elements.ts'
import { parseLabels } from '../../values/labels.ts'
import type { ExampleShapes } from './try-example.ts'

/** Reads what labels come from. Each resolves with the bytes of a file. */
export interface LabelFiles {
  graph: () => Promise<Uint8Array>
  /** Reads a file by its name beside the graph. */
  read: (name: string) => Promise<Uint8Array>
}

/**
 * Applies the steps to zeros in the shapes of the outputs. Rejects with `invalid_request` that names
 * the output if its labels are missing, or if their number is not that of its classes. Labels are
 * checked even if there are no shapes, because the model did not run.
 */
export async function checkSteps(
  bindings: Readonly<Record<string, Binding>>,
  shapes: ExampleShapes,
  files: LabelFiles,
): Promise<void> {
  for (const [name, { tensor, steps = [] }] of Object.entries(bindings)) {
    const open = await Promise.all(
      steps.map(async (step): Promise<OpenStep> => {
        const source = getLabelsSource(step)
        return { step, labels: source ? await readLabels(name, source, files) : [] }
      }),
    )
    const shape = shapes.get(tensor)
    // A mask is an image of the page, and fits any shape of one.
    const numeric = open.filter(({ step }) => step.step !== 'mask')
    if (!shape || numeric.length === 0) continue
    const zeros = new Float32Array(countElements(shape))
    applySteps({ type: 'float32', data: zeros, shape }, numeric, (why) => {
      throw refuse(`--step ${name}: the output ${why}`, `Correct --labels ${name} or the step.`)
    })
  }
}

async function readLabels(
  name: string,
  source: Labels,
  { graph, read }: LabelFiles,
): Promise<readonly string[]> {
  const text =
    'file' in source
      ? new TextDecoder().decode(await read(source.file))
      : await readMetadata(new Blob([(await graph()) as BlobPart]), source.metadata)
  const names = text === null ? null : parseLabels(text)
  if (names) return names
  const what = 'file' in source ? source.file : `the metadata ${source.metadata} of the model`
  throw refuse(`--labels ${name}: ${what} has no labels.`, 'Name another file or key.')
}
