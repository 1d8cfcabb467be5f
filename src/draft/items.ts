/** Lists the files of an implementation. */
import type { Resource } from '../catalog/schema.ts'
import type { Folder } from './folder.ts'
import type { OnnxModel } from './model.ts'
import { refuse } from './refuse.ts'

export interface Item {
  type: Resource['type']
  /** Name among the resources, with forward slashes. */
  name: string
  /** Path of the file. */
  path: string
  bytes: number
}

/**
 * Returns a graph and the files of its weights. Names are relative to the folder of the graph.
 * Throws `invalid_request` if a file is missing or outside the folder; the message names it.
 */
export function itemsOf(folder: Folder, graph: string, { externalData }: OnnxModel): Item[] {
  const slash = graph.lastIndexOf('/') + 1
  const base = graph.slice(0, slash)
  const data = externalData.map((location): Item => {
    const name = below(location)
    if (name === null) {
      throw refuse(
        `${folder.nameOf(graph)} keeps weights in ${location}, outside of its folder.`,
        'Save it again with its weights beside it.',
      )
    }
    const path = base + name
    const bytes = folder.sizeOf(path)
    if (bytes === undefined) {
      throw refuse(
        `${folder.nameOf(graph)} keeps weights in ${name}, which is not beside it.`,
        `Put ${name.slice(name.lastIndexOf('/') + 1)} there, or save the model again in one file.`,
      )
    }
    return { type: 'data', name, path, bytes }
  })
  return [
    { type: 'onnx', name: graph.slice(slash), path: graph, bytes: folder.sizeOf(graph) ?? 0 },
    ...data,
  ]
}

/** Returns the normalized path; `null` for a path that leads out of the folder. */
function below(location: string): string | null {
  if (/^([\\/]|[a-z]:)/i.test(location)) return null
  const parts: string[] = []
  for (const part of location.split('/')) {
    if (part === '..' && parts.pop() === undefined) return null
    if (part !== '' && part !== '.' && part !== '..') parts.push(part)
  }
  return parts.join('/')
}
