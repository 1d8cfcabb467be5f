/**
 * Lets the runs of a decoder be captured. On WebGPU, the runtime can record the commands of a run and submit them
 * again, which leaves out what a run costs the CPU: it chooses no kernels, allocates no memory and binds no buffers.
 * That needs a graph of which nothing is computed on the CPU. Exports compute the lengths of sequences from an
 * attention mask, and which logits are wanted from their number, and the runtime does both on the CPU. Here, the
 * lengths and the wanted rows are inputs.
 */
import {
  attribute,
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
import {
  encode,
  type Fields,
  GRAPH,
  message,
  NODE,
  rewriteGraph,
  rewriteMessage,
  textsOf,
  VALUE,
} from './protobuf.ts'
import { kindOf } from './tensor.ts'

/** Name of the input with the position of each sequence's last token: int32, one for each sequence. */
export const LAST_POSITIONS_INPUT = 'inorigin.last_positions'
/** Name of the input with the number of tokens of the longest sequence: int32, a list of one. */
export const LONGEST_INPUT = 'inorigin.longest'
/** Name of the input with the positions in the run of the tokens whose logits are wanted: int64. */
export const LOGIT_ROWS_INPUT = 'inorigin.logit_rows'

/** Inputs that the new ones replace. */
const MASK = 'attention_mask'
const KEEP = 'num_logits_to_keep'

/** Inputs that a captured run can have besides KV caches. */
const PLAIN_INPUTS: ReadonlySet<string> = new Set(['input_ids', 'position_ids', MASK, KEEP])

/** Places of the lengths among the inputs of an attention. */
const LENGTHS: ReadonlyMap<number, string> = new Map([
  [5, LAST_POSITIONS_INPUT],
  [6, LONGEST_INPUT],
])

/** Smallest end of a slice that ends where its tensor does. */
const OPEN_END = 2 ** 31 - 1

/**
 * Resolves with the files of a graph that takes the inputs above in place of the mask and the number of logits.
 * Resolves with `null` if the graph uses these otherwise, if it has no grouped attention, if it has states or other
 * inputs, or if it has branches, which the runtime cannot capture.
 */
export async function withCaptureInputs(files: GraphFiles): Promise<GraphFiles | null> {
  const graph = await readGraphFile({ ...files, externalData: [] })
  const attentions = graph.nodes.filter(({ kind }) => kind === 'GroupQueryAttention')
  const isFlat = graph.nodes.every(({ branches }) => branches.length === 0)
  if (attentions.length === 0 || !attentions.every(isCapturable) || !isFlat) return null
  // A run returns new states, but a captured one reads those of the first run.
  const keptInPlace = new Set(attentions.flatMap(({ inputs }) => inputs.slice(3, 5)))
  const given = [...graph.inputs].filter((name) => !graph.constants.has(name))
  if (!given.every((name) => PLAIN_INPUTS.has(name) || keptInPlace.has(name))) return null
  const slice = graph.inputs.has(KEEP) ? await findLastRows(files.model, graph) : undefined

  const outputs = new Set([...graph.ports].filter((name) => !graph.inputs.has(name)))
  const rewritten = graph.nodes.map((node) => ({ ...node, inputs: newInputs(node, slice) }))
  const needed = findNeeded(rewritten, outputs)
  if ([...needed].some((node) => readsOf(node).some((name) => name === MASK || name === KEEP)))
    return null
  const kept = new Set([...needed].map(({ from }) => from))
  const attentionsAt = new Set(attentions.map(({ from }) => from))
  const model = await rewriteGraph(
    files.model,
    async (field, window) => {
      const { number, from, to } = field
      if (number === GRAPH.input) {
        const [name] = textsOf(await window.read(from, to), VALUE.name)
        return name === MASK || name === KEEP ? [] : null
      }
      if (number !== GRAPH.node) return null
      if (!kept.has(from)) return []
      if (from === slice?.from) return [encode([rowsNode(slice)])]
      if (!attentionsAt.has(from)) return null
      let at = -1
      const changed = await rewriteMessage(files.model, window, field, async (part) => {
        if (part.number !== NODE.input) return null
        at += 1
        const name = LENGTHS.get(at)
        return name === undefined ? null : [encode([[NODE.input, name]])]
      })
      return message(GRAPH.node, changed)
    },
    [encode(newPorts(slice !== undefined))],
  )
  return { ...files, model }
}

/** Inputs of an attention that say more than keys, values, lengths and rotation: a bias, sinks, scales of caches. */
const FIRST_SPECIAL_INPUT = 9

/**
 * Returns `true` if captured runs compute the attention. Where lengths are inputs, the kernels of onnxruntime-web 1.30
 * ignore a sliding window, without an error. A limit of the scores (`softcap`) gave other tokens than on the CPU,
 * captured or not.
 */
const isCapturable = ({ inputs, attributes }: Node): boolean =>
  [...LENGTHS.keys()].every((at) => inputs[at]) &&
  inputs.slice(FIRST_SPECIAL_INPUT).every((name) => name === '') &&
  (attributes.get('local_window_size') ?? -1) <= 0 &&
  (attributes.get('softcap') ?? 0) === 0

function newInputs({ from, kind, inputs }: Node, slice: Node | undefined): readonly string[] {
  if (from === slice?.from) return [inputs[0] ?? '', LOGIT_ROWS_INPUT]
  if (kind !== 'GroupQueryAttention') return inputs
  return inputs.map((name, at) => LENGTHS.get(at) ?? name)
}

const newPorts = (hasRows: boolean): Fields => [
  portField(GRAPH.input, LAST_POSITIONS_INPUT, kindOf('int32').number, ['batch_size']),
  portField(GRAPH.input, LONGEST_INPUT, kindOf('int32').number, [1]),
  ...(hasRows ? [portField(GRAPH.input, LOGIT_ROWS_INPUT, kindOf('int64').number, ['rows'])] : []),
]

/** Returns a node that picks rows of the same tensor by the input. */
const rowsNode = ({ inputs: [states = ''], outputs }: Node): Fields[number] =>
  nodeField('Gather', [states, LOGIT_ROWS_INPUT], outputs, attribute('axis', 1))

/** Returns the node that cuts the last rows of the hidden states, as many as the input says, if there is one. */
async function findLastRows(model: Blob, graph: GraphFile): Promise<Node | undefined> {
  const integerOf = createIntegerReader(model, graph)
  for (const node of graph.nodes) {
    const [, starts = '', ends = '', axes = '', steps = ''] = node.inputs
    if (node.kind !== 'Slice' || !dependsOn(graph.nodes, starts, KEEP)) continue
    const [end, axis, step] = [await integerOf(ends), await integerOf(axes), await integerOf(steps)]
    if (
      end === null ||
      end < OPEN_END ||
      (axis !== 1 && axis !== -2) ||
      (steps !== '' && step !== 1)
    )
      continue
    return node
  }
  return undefined
}

const dependsOn = (nodes: readonly Node[], name: string, input: string): boolean =>
  name === input ||
  [...findNeeded(nodes, new Set([name]))].some((node) => readsOf(node).includes(input))
