/** Which files of an implementation are the graphs of its decoder, and which hold their weights. */
import { DECODERS, PRECISIONS } from '../../catalog/hub/layout.ts'
import type { Files } from '../engine.ts'
import { modelUnusable } from '../failure.ts'

/** A graph, and its weights by the path that it refers to them by. */
export interface GraphFiles {
  model: Blob
  externalData: { path: string; data: Blob }[]
}

export interface ModelFiles {
  decoder: GraphFiles
  /** What makes the decoder's inputs of tokens, where that is a graph of its own. */
  embed?: GraphFiles
}

const PRECISION = new RegExp(`(?:${PRECISIONS.join('|')})$`)

/**
 * The one decoder among those files, of whatever precision; parts for images and sound are left
 * out.
 * Throws `unavailable` naming what is missing or too much.
 */
export function findModel(files: Files): ModelFiles {
  const names = [...files.keys()]
  const graphs = names.filter((name) => name.endsWith('.onnx'))
  const decoder = graphs.length === 1 ? graphs[0] : theDecoder(graphs)
  if (decoder === undefined) {
    throw modelUnusable('its catalog entry has no resource named onnx/model.onnx.')
  }
  const embeds = graphs.filter((name) => partOf(name) === 'embed_tokens')
  const embed = closest(embeds, decoder)
  const owned = (graph: string): GraphFiles => ({
    model: files.get(graph) as Blob,
    externalData: dataOf(graph, names).map(({ name, path }) => ({
      path,
      data: files.get(name) as Blob,
    })),
  })
  return {
    decoder: owned(decoder),
    ...(embed !== undefined && partOf(decoder) !== 'model' && { embed: owned(embed) }),
  }
}

function theDecoder(graphs: readonly string[]): string | undefined {
  for (const part of DECODERS) {
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

/** Of the same precision as that one where there is a choice. */
function closest(names: readonly string[], other: string): string | undefined {
  return names.find((name) => precisionOf(name) === precisionOf(other)) ?? names[0]
}

const stemOf = (name: string): string =>
  name.slice(name.lastIndexOf('/') + 1).replace(/\.onnx$/, '')

const partOf = (name: string): string => stemOf(name).replace(PRECISION, '')

const precisionOf = (name: string): string => PRECISION.exec(stemOf(name))?.[0] ?? ''

/**
 * Exports name external weights after the graph, `model.onnx_data`, `model.onnx_data_1` or
 * `model.onnx.data`; a file that is named after none may belong to any of its folder.
 */
function dataOf(graph: string, names: readonly string[]): { name: string; path: string }[] {
  const folder = graph.slice(0, graph.lastIndexOf('/') + 1)
  const graphs = names.filter((name) => name.endsWith('.onnx'))
  const isOf = (name: string, each: string): boolean =>
    name.startsWith(each) && /^[._]data/.test(name.slice(each.length))
  return names
    .filter((name) => name.startsWith(folder) && !graphs.includes(name))
    .filter((name) => isOf(name, graph) || !graphs.some((each) => isOf(name, each)))
    .map((name) => ({ name, path: name.slice(folder.length) }))
}
