/** The files that an implementation is made of. */
import type { Resource } from '../../catalog/schema.ts'
import type { Folder } from './folder.ts'
import type { OnnxModel } from './model.ts'
import { refuse } from './refuse.ts'

export interface Item {
  type: Resource['type']
  /** Its name among the resources, with forward slashes. */
  name: string
  /** Where it is. */
  path: string
  bytes: number
}

/**
 * A graph and the files of its weights, by their names from the graph's folder on; throws
 * `invalid_request` that names the one that is missing.
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

/** The same path without steps that lead nowhere; `null` for one that leads out of the folder. */
function below(location: string): string | null {
  if (/^([\\/]|[a-z]:)/i.test(location)) return null
  const parts: string[] = []
  for (const part of location.split('/')) {
    if (part === '..' && parts.pop() === undefined) return null
    if (part !== '' && part !== '.' && part !== '..') parts.push(part)
  }
  return parts.join('/')
}
