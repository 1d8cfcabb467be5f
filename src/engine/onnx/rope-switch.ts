/**
 * Makes the choice of rotation factors an input of the graph. Models with a long rope have short
 * factors for sequences up to a length, and long ones for sequences beyond it. Some exports choose
 * in the graph, by the number of tokens so far. A sequence that grows beyond that length would mix
 * keys of both kinds. With the input, all tokens of a sequence use the same factors.
 */
import { type Node, readGraphFile } from './graph-file.ts'
import type { GraphFiles } from './model-files.ts'
import {
  encode,
  type Fields,
  GRAPH,
  message,
  NODE,
  rewriteGraph,
  TENSOR_TYPE,
  TYPE,
  VALUE,
} from './protobuf.ts'

/** Name of the input: a boolean that is `true` for long sequences. */
export const LONG_ROPE_INPUT = 'inorigin.long_rope'

/** Number of the boolean element type in onnx.proto. */
const BOOL = 9

/** Operators that compare a length with a limit, and what computes their result from the input. */
const COMPARISONS: ReadonlyMap<string, 'Identity' | 'Not'> = new Map([
  ['Greater', 'Identity'],
  ['GreaterOrEqual', 'Identity'],
  ['Less', 'Not'],
  ['LessOrEqual', 'Not'],
])

/** Inputs of a decoder whose shapes or values say how many tokens there are. */
const LENGTH_INPUTS: ReadonlySet<string> = new Set(['input_ids', 'attention_mask', 'position_ids'])

/**
 * Resolves with the files of a graph that takes the input `LONG_ROPE_INPUT`. A graph without an `If`
 * whose condition compares the length stays unchanged.
 */
export async function withRopeSwitch(files: GraphFiles): Promise<GraphFiles> {
  const { nodes } = await readGraphFile({ ...files, externalData: [] })
  const comparisons = new Map(
    findLengthComparisons(nodes).map((node) => [node.from, node] as const),
  )
  if (comparisons.size === 0) return files
  const added = encode([[GRAPH.input, INPUT]])
  const replaced = async ({ from }: { from: number }): Promise<BlobPart[] | null> => {
    const node = comparisons.get(from)
    if (!node) return null
    const kind = COMPARISONS.get(node.kind) as string
    const fields: Fields = [
      [NODE.input, LONG_ROPE_INPUT],
      [NODE.output, node.outputs[0] as string],
      [NODE.kind, kind],
    ]
    return message(GRAPH.node, new Blob(encode(fields)))
  }
  return { ...files, model: await rewriteGraph(files.model, replaced, added) }
}

const INPUT: Fields = [
  [VALUE.name, LONG_ROPE_INPUT],
  [
    VALUE.type,
    [
      [
        TYPE.tensor,
        [
          [TENSOR_TYPE.element, BOOL],
          [TENSOR_TYPE.shape, []],
        ],
      ],
    ],
  ],
]

/** Returns the comparisons that choose a branch by the number of tokens. */
function findLengthComparisons(nodes: readonly Node[]): Node[] {
  const producers = new Map(
    nodes.flatMap((node) => node.outputs.map((name) => [name, node] as const)),
  )
  const conditions = nodes.flatMap(({ kind, inputs: [condition] }) =>
    kind === 'If' && condition !== undefined ? [condition] : [],
  )
  return [...new Set(conditions)].flatMap((condition) => {
    const node = producers.get(condition)
    const [length] = node?.inputs ?? []
    const isLength = length !== undefined && comesFromLength(length, producers)
    return node && COMPARISONS.has(node.kind) && isLength ? [node] : []
  })
}

/** Returns `true` if a tensor is computed from an input that says the number of tokens. */
function comesFromLength(name: string, producers: ReadonlyMap<string, Node>): boolean {
  const pending = [name]
  const seen = new Set<string>()
  let found = false
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (seen.has(next)) continue
    seen.add(next)
    found ||= LENGTH_INPUTS.has(next)
    pending.push(...(producers.get(next)?.inputs ?? []))
  }
  return found
}
