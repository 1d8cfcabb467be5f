/** Loads the names of classes from files and from the metadata of models. */
import type { Implementation, Labels, PredictorEntry, Step } from '../catalog/schema.ts'
import type { Files } from '../engine/engine.ts'
import { readMetadata } from '../engine/onnx/metadata.ts'
import { throwPredictorUnusable } from '../values/input-errors.ts'
import { parseLabels } from '../values/labels.ts'

/** Maximum size in bytes of a file with labels. */
const MAX_LABELS_BYTES = 2 ** 22

/** Names of classes by their source, as {@link toLabelsKey} writes it. */
export type LabelTable = ReadonlyMap<string, readonly string[]>

export const toLabelsKey = (source: Labels): string => JSON.stringify(source)

export const getLabelsSource = (step: Step): Labels | undefined =>
  'labels' in step ? step.labels : undefined

/** Resolves with the labels of all steps. Rejects with `unavailable` if some cannot be read. */
export async function openLabels(
  { tag }: PredictorEntry,
  { bindings = {}, resources }: Implementation,
  files: Files,
): Promise<LabelTable> {
  const graph = resources.find(({ type }) => type === 'onnx')?.name ?? ''
  const sources = Object.values(bindings).flatMap(({ steps = [] }) =>
    steps.flatMap((step) => getLabelsSource(step) ?? []),
  )
  const opened = sources.map(async (source): Promise<[string, readonly string[]]> => {
    const [at, text] =
      'file' in source
        ? [`resources.${source.file}`, await readText(files.get(source.file))]
        : [
            `metadata.${source.metadata}`,
            await readMetadata(files.get(graph) ?? new Blob(), source.metadata),
          ]
    const names = text === null ? null : parseLabels(text)
    return [toLabelsKey(source), names ?? throwPredictorUnusable(tag, at, 'has no labels.')]
  })
  return new Map(await Promise.all(opened))
}

async function readText(file: Blob | undefined): Promise<string | null> {
  return file && file.size <= MAX_LABELS_BYTES ? file.text() : null
}
