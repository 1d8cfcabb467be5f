/** Kind of a folder: one graph, a model in the layout of web exports, or one compiled by MLC. */
import { CONFIG_FILE } from '../catalog/mlc/model-files.ts'
import { refuse } from './refuse.ts'

export type Kind =
  | { kind: 'graph'; path: string }
  /** A folder with a configuration, a tokenizer and `onnx/`. */
  | { kind: 'layout' }
  | { kind: 'mlc' }

const LAYOUT = 'config.json, tokenizer.json and onnx/model*.onnx for a language model'

/** Returns the kind by the paths of the files. Throws `invalid_request` with the expected files. */
export function kindOf(folder: string, paths: readonly string[]): Kind {
  const has = (path: string): boolean => paths.includes(path)
  if (has(CONFIG_FILE)) return { kind: 'mlc' }
  const hasGraphs = paths.some((path) => path.startsWith('onnx/'))
  if (has('config.json') && has('tokenizer.json') && hasGraphs) return { kind: 'layout' }
  const graphs = paths.filter((path) => path.endsWith('.onnx'))
  const [only] = graphs
  if (only === undefined) {
    throw refuse(`${folder} has no .onnx file.`, `Choose a folder with one, or with ${LAYOUT}.`)
  }
  if (graphs.length === 1) return { kind: 'graph', path: only }
  throw refuse(
    `${folder} has ${graphs.length} graphs: ${graphs.join(', ')}.`,
    `Choose one of them, or add ${LAYOUT}.`,
  )
}
