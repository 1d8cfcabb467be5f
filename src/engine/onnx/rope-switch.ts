/**
 * Makes the choice of rotation factors an input of the graph. Models with a long rope have short
 * factors for sequences up to a length, and long ones for sequences beyond it. Some exports choose
 * in the graph, by the number of tokens so far. A sequence that grows beyond that length would mix
 * keys of both kinds. With the input, all tokens of a sequence use the same factors.
 */
import {
  createIntegerReader,
  findNeeded,
  type GraphFile,
  type Node,
  nodeField,
  portField,
  readGraphFile,
  readsOf,
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

const OPPOSITES = { Identity: 'Not', Not: 'Identity' } as const

/** Operators that may stand between a comparison and the choice that it makes. */
const CONVERSIONS: ReadonlySet<string> = new Set(['Identity', 'Not', 'Cast'])

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
  const choices = await findLengthChoices(files.model, graph)
  const limits = new Set(choices.map(({ maxShortLength }) => maxShortLength))
  const [maxShortLength] = limits
  if (maxShortLength === undefined || limits.size > 1) return { files }
  const replaced = new Map(choices.map((choice) => [choice.node.from, choice] as const))
  const model = await rewriteGraph(
    files.model,
    async ({ from }) => {
      const choice = replaced.get(from)
      if (!choice) return null
      return [encode([nodeField(choice.replacement, [LONG_ROPE_INPUT], choice.node.outputs)])]
    },
    [encode([portField(GRAPH.input, LONG_ROPE_INPUT, kindOf('bool').number, [])])],
  )
  return { files: { ...files, model }, maxShortLength }
}

/** Returns the comparisons that choose between constants by the number of tokens, with the limit. */
async function findLengthChoices(model: Blob, graph: GraphFile) {
  const { nodes } = graph
  const producers = new Map(
    nodes.flatMap((node) => node.outputs.map((name) => [name, node] as const)),
  )
  const readLimit = createIntegerReader(model, graph)
  /** Returns the comparison behind a condition, which may be negated or converted. */
  const findComparison = (condition = ''): Node | undefined => {
    const node = producers.get(condition)
    return node && CONVERSIONS.has(node.kind) ? findComparison(node.inputs[0]) : node
  }
  const choices = nodes.filter(
    ({ kind, branches }) => kind === 'If' && branches.every((each) => isConstant(graph, each)),
  )
  const found = [...new Set(choices.map(({ inputs }) => findComparison(inputs[0])))].map(
    async (node) => {
      const comparison = COMPARISONS[node?.kind ?? '']
      const [left, right] = node?.inputs ?? []
      if (!node || !comparison || left === undefined || right === undefined) return []
      const { isLimitShort, replacement } = comparison
      const [onLeft, onRight] = [await readLimit(left), await readLimit(right)]
      if (onRight !== null && comesFrom(nodes, left, LENGTH_INPUTS))
        return [{ node, replacement, maxShortLength: isLimitShort ? onRight : onRight - 1 }]
      // With the limit on the left, the comparison is the opposite one.
      if (onLeft !== null && comesFrom(nodes, right, LENGTH_INPUTS))
        return [
          {
            node,
            replacement: OPPOSITES[replacement],
            maxShortLength: isLimitShort ? onLeft - 1 : onLeft,
          },
        ]
      return []
    },
  )
  return (await Promise.all(found)).flat()
}

/** Returns `true` for a branch whose results depend on no input of the graph. */
function isConstant(
  { nodes, constants, inputs }: GraphFile,
  { nodes: inner, outputs }: Node['branches'][number],
): boolean {
  const given = new Set([...inputs].filter((name) => !constants.has(name)))
  return [...inner.flatMap(readsOf), ...outputs].every((name) => !comesFrom(nodes, name, given))
}

/** Returns `true` if a tensor is one of the inputs, or is computed from one of them. */
const comesFrom = (nodes: readonly Node[], name: string, inputs: ReadonlySet<string>): boolean =>
  inputs.has(name) ||
  [...findNeeded(nodes, new Set([name]))].some((node) =>
    readsOf(node).some((input) => inputs.has(input)),
  )
