/** Finds the graphs of a decoder and their external weights among an implementation's files. */
import { DECODER_NAMES, PRECISION_SUFFIXES } from '../../catalog/hub/variants.ts'
import { modelUnusable, resourceMissing } from '../failure.ts'

/** A graph, and its external weights by the path that the graph refers to. */
export interface GraphFiles<File = Blob> {
  model: File
  externalData: { path: string; data: File }[]
}

/** Files of a text model. */
export interface ModelFiles<File = Blob> {
  decoder: GraphFiles<File>
  /** Graph that computes embeddings from tokens, if the decoder does not contain it. */
  embed?: GraphFiles<File>
  /** Graph that encodes images, if there is one. */
  vision?: GraphFiles<File>
}

/** Size in bytes of weights from which low memory use matters more than a quick start; a guess. */
const LARGE_WEIGHT_BYTES = 150 * 2 ** 20

/** Returns `true` if low memory use matters more than a quick start for these weights. */
export const hasLargeWeights = ({
  decoder,
  embed,
  vision,
}: ModelFiles<{ size: number }>): boolean =>
  weightBytes(decoder) + weightBytes(embed) + weightBytes(vision) >= LARGE_WEIGHT_BYTES

const weightBytes = (files: GraphFiles<{ size: number }> | undefined): number =>
  files?.externalData.reduce((bytes, { data }) => bytes + data.size, files.model.size) ?? 0

const PRECISION = new RegExp(`(?:${PRECISION_SUFFIXES.join('|')})$`)

/**
 * Returns the only decoder among the files, in any precision, with the graphs that it needs;
 * encoders of audio are ignored. A GGUF file takes the place of a graph, and the other parts of a
 * split one that of external weights. Throws `unavailable` if there is no decoder or more than one.
 */
export function getModelFiles<File>(files: ReadonlyMap<string, File>): ModelFiles<File> {
  const graphs = [...files.keys()].filter((name) => name.endsWith('.onnx'))
  const [first, ...others] = [...files]
    .filter(([name]) => name.endsWith('.gguf'))
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([path, data]) => ({ path, data }))
  if (first && graphs.length === 0) return { decoder: { model: first.data, externalData: others } }
  const decoder = graphs.length === 1 ? graphs[0] : findDecoder(graphs)
  if (decoder === undefined) throw resourceMissing('onnx/model.onnx')
  const embeds = graphs.filter((name) => partOf(name) === 'embed_tokens')
  const embed = findClosest(embeds, decoder)
  const encoders = graphs.filter((name) => partOf(name) === 'vision_encoder')
  const vision = findClosest(encoders, decoder)
  const owned = (graph: string): GraphFiles<File> => ({
    model: files.get(graph) as File,
    externalData: externalDataOf(graph, files),
  })
  return {
    decoder: owned(decoder),
    ...(embed !== undefined && partOf(decoder) !== 'model' && { embed: owned(embed) }),
    ...(vision !== undefined && { vision: owned(vision) }),
  }
}

function findDecoder(graphs: readonly string[]): string | undefined {
  for (const part of DECODER_NAMES) {
    const found = graphs.filter((name) => partOf(name) === part)
    const whole = found.find((name) => precisionOf(name) === '') ?? found[0]
    if (found.length > 1 && precisionOf(whole ?? '') !== '') {
      const list = found.join(', ')
      throw modelUnusable(`its catalog entry has more than one decoder, ${list}.`)
    }
    if (whole !== undefined) return whole
  }
  return undefined
}

/** Returns the file with the same precision as `other`, or else the first one. */
function findClosest(names: readonly string[], other: string): string | undefined {
  return names.find((name) => precisionOf(name) === precisionOf(other)) ?? names[0]
}

const stemOf = (name: string): string =>
  name.slice(name.lastIndexOf('/') + 1).replace(/\.onnx$/, '')

const partOf = (name: string): string => stemOf(name).replace(PRECISION, '')

const precisionOf = (name: string): string => PRECISION.exec(stemOf(name))?.[0] ?? ''

/**
 * Returns the external weights of a graph. Exports name them after the graph: `model.onnx_data`,
 * `model.onnx_data_1` or `model.onnx.data`. A file that is named after no graph may belong to any
 * graph of its folder.
 */
function externalDataOf<File>(graph: string, files: ReadonlyMap<string, File>) {
  const folder = graph.slice(0, graph.lastIndexOf('/') + 1)
  const graphs = [...files.keys()].filter((name) => name.endsWith('.onnx'))
  const isOf = (name: string, each: string): boolean =>
    name.startsWith(each) && /^[._]data/.test(name.slice(each.length))
  return [...files]
    .filter(([name]) => name.startsWith(folder) && !graphs.includes(name))
    .filter(([name]) => isOf(name, graph) || !graphs.some((each) => isOf(name, each)))
    .map(([name, data]) => ({ path: name.slice(folder.length), data }))
}
