/**
 * Makes the choice of rotation factors an input of the graph. Models with a long rope have short
 * factors for sequences up to a length, and long ones for sequences beyond it. Some exports choose
 * in the graph, by the number of tokens so far. A sequence that grows beyond that length would mix
 * keys of both kinds. With the input, all tokens of a sequence use the same factors.
 */
import {
  findNeeded,
  type GraphFile,
  type Node,
  nodeField,
  portField,
  readGraphFile,
} from './graph-file.ts'
import type { GraphFiles } from './model-files.ts'
import { encode, GRAPH, rewriteGraph } from './protobuf.ts'
import { kindOf } from './tensor.ts'

/** Name of the input: a boolean that is `true` for long sequences. */
export const LONG_ROPE_INPUT = 'inorigin.long_rope'

/** Operators that compare a length with a limit, as a rope is chosen by it. */
const COMPARISONS: Readonly<
  Record<string, { replacement: 'Identity' | 'Not'; isLimitShort: boolean }>
> = {
  Greater: { replacement: 'Identity', isLimitShort: true },
  GreaterOrEqual: { replacement: 'Identity', isLimitShort: false },
  Less: { replacement: 'Not', isLimitShort: false },
  LessOrEqual: { replacement: 'Not', isLimitShort: true },
}

/** Inputs of a decoder whose shapes or values say how many tokens there are. */
const LENGTH_INPUTS: ReadonlySet<string> = new Set(['input_ids', 'attention_mask', 'position_ids'])

/**
 * Resolves with the files of a graph that takes the input `LONG_ROPE_INPUT`, and with the greatest
 * length in tokens of short sequences. A graph stays unchanged unless it has an `If` between
 * constants whose condition compares the length with a constant.
 */
export async function withRopeSwitch(
  files: GraphFiles,
): Promise<{ files: GraphFiles; maxShortLength?: number }> {
  const graph = await readGraphFile({ ...files, externalData: [] })
  const choices = await findLengthChoices(graph)
  const limits = new Set(choices.map(({ maxShortLength }) => maxShortLength))
  const [maxShortLength] = limits
  if (maxShortLength === undefined || limits.size > 1) return { files }
  const nodes = new Map(choices.map(({ node }) => [node.from, node] as const))
  const model = await rewriteGraph(
    files.model,
    async ({ from }) => {
      const node = nodes.get(from)
      const replacement = COMPARISONS[node?.kind ?? '']?.replacement
      if (!node || !replacement) return null
      return encode([nodeField(replacement, [LONG_ROPE_INPUT], node.outputs)])
    },
    encode([portField(GRAPH.input, LONG_ROPE_INPUT, kindOf('bool').number, [])]),
  )
  return { files: { ...files, model }, maxShortLength }
}

/** Returns the comparisons that choose between constants by the number of tokens, with the limit. */
async function findLengthChoices({ nodes, constants }: GraphFile) {
  const producers = new Map(
    nodes.flatMap((node) => node.outputs.map((name) => [name, node] as const)),
  )
  const readInteger = async (name: string): Promise<number | null> => {
    const data = constants.get(name)?.data
    if (data?.size !== 8) return producers.get(name)?.integer ?? null
    return Number(new DataView(await data.arrayBuffer()).getBigInt64(0, true))
  }
  const conditions = nodes
    .filter(({ kind, branches }) => kind === 'If' && branches.every(isConstant))
    .flatMap(({ inputs }) => inputs.slice(0, 1))
  const found = [...new Set(conditions)].map(async (condition) => {
    const node = producers.get(condition)
    const comparison = COMPARISONS[node?.kind ?? '']
    const [length, limit] = node?.inputs ?? []
    if (!node || !comparison || length === undefined || limit === undefined) return []
    const integer = await readInteger(limit)
    if (integer === null || !comesFromLength(nodes, length)) return []
    return [{ node, maxShortLength: comparison.isLimitShort ? integer : integer - 1 }]
  })
  return (await Promise.all(found)).flat()
}

/** Returns `true` for a branch that only returns tensors that are there, or constants of its own. */
const isConstant = ({ nodes }: Node['branches'][number]): boolean =>
  nodes.every(({ kind }) => kind === 'Constant' || kind === 'Identity')

/** Returns `true` if a tensor is computed from an input that says the number of tokens. */
const comesFromLength = (nodes: readonly Node[], name: string): boolean =>
  [...findNeeded(nodes, new Set([name]))].some(({ inputs }) =>
    inputs.some((input) => LENGTH_INPUTS.has(input)),
  )
