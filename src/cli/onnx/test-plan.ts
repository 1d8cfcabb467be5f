/** Tests the planned model before anything is copied, and adds what the author must know to its notes. */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { InferenceSession, Tensor, TensorConstructor } from 'onnxruntime-web'
import { sumBytes } from '../../catalog/memory-bytes.ts'
import type { Binding, Implementation, Labels, PredictorEntry } from '../../catalog/schema.ts'
import type { Item, Plan } from '../../draft/plan.ts'
import { refuse } from '../../draft/refuse.ts'
import { isSampleRate } from '../../draft/wishes.ts'
import { InoriginError } from '../../error.ts'
import { bindSignature } from '../../predictor/bind.ts'
import type { TextTokenizer } from '../../predictor/text.ts'
import { getLabelsSource, readMetadata, readNames, toLabelsKey } from '../../predictor/labels.ts'
import { applySteps, isAlone, type OpenStep } from '../../predictor/steps.ts'
import { toImageShape } from '../../predictor/image-tensor.ts'
import { fitsShape, isFixedLength } from '../../predictor/tensor.ts'
import { ARRAYS, countElements } from '../../values/elements.ts'
import { type ModelRoot, openFolder, readInside } from '../add/model-root.ts'
import { stripWeights } from './strip-weights.ts'

interface TestOptions {
  runtime: () => string
  signal: AbortSignal
  onStep: (what: string) => void
}

/** Maximum bytes of weights of a model that is run. Of larger ones, only the graph is opened. */
const MAX_RUN_BYTES = 512 * 2 ** 20

/**
 * Opens and runs the graph. Resolves with the shapes of its inputs, which are empty if it did not
 * run. Rejects with `invalid_request` if the runtime or the inputs and outputs do not fit the model.
 */
export async function testPlan(
  root: ModelRoot,
  { entry, implementations, notes }: Plan,
  options: TestOptions,
): Promise<ExampleShapes> {
  if (entry.type !== 'predictor') return new Map()
  const {
    items = [],
    bindings = {},
    decoder,
  } = implementations.find(({ device }) => device === 'wasm') ?? {}
  const [graph, ...others] = items.filter(({ type }) => type === 'onnx')
  if (!graph) return new Map()
  options.onStep('Testing it in the runtime')
  if (sumBytes(items) > MAX_RUN_BYTES) {
    notes.push(await openLarge(root, graph, options))
    await checkSteps(bindings, new Map(), root, items)
    return new Map()
  }
  const model = await run(root, graph, items, bindings, notes, options)
  checkBindings(entry, bindings, decoder, model)
  for (const other of others) await (await openGraph(root, other, items, options)).session.release()
  notes.push(...suggestOptions(model, bindings, entry.states !== undefined))
  await checkSteps(bindings, model.outputs, root, items)
  return model.shapes
}

/** Opens the graph of a model that is too large to run. Resolves with a note about the result. */
async function openLarge(
  root: ModelRoot,
  graph: Item,
  { runtime, signal }: TestOptions,
): Promise<string> {
  const file = await openFolder(root).open(graph.path)
  try {
    const stripped = await stripWeights(file, MAX_RUN_BYTES, signal)
    if (!stripped) return 'The model is too large to test here. Test it in a page.'
    const name = join(root.path, graph.path)
    const failure = await testGraph(stripped, { name, runtime: runtime() })
    const did =
      failure === null ? 'opened only its graph.' : `did not open its graph alone: ${failure}`
    return `The model is too large to run here, and the runtime ${did} Test it in a page.`
  } finally {
    await file.close()
  }
}

/**
 * Opens the model and runs it on the inputs of the example code, as browsers do on WebAssembly.
 * Rejects with `invalid_request` and the runtime's reason if the model cannot be opened.
 */
async function run(
  root: ModelRoot,
  graph: Item,
  items: readonly Item[],
  bindings: Bindings,
  notes: string[],
  options: TestOptions,
) {
  const { ort, session } = await openGraph(root, graph, items, options)
  try {
    const { failure, ...ran } = await tryExample(session, ort.Tensor, options.signal, bindings)
    if (failure !== undefined)
      notes.push(
        `The example below fails, because the model ran on none of the inputs that were tried: ${toReason(failure)} ` +
          'Give it the shapes and values that it expects.',
      )
    return { ...ran, tensors: { inputs: session.inputMetadata, outputs: session.outputMetadata } }
  } finally {
    await session.release()
  }
}

/** Opens a graph. Rejects with `invalid_request` and the runtime's reason if it cannot be opened. */
async function openGraph(
  root: ModelRoot,
  graph: Item,
  items: readonly Item[],
  { runtime }: TestOptions,
) {
  const base = graph.name.slice(0, graph.name.lastIndexOf('/') + 1)
  const bytes = await readInside(root, graph.path)
  const isOther = (name: string): boolean =>
    items.some((one) => one.type === 'onnx' && one !== graph && name.startsWith(one.name))
  const data = items.filter(({ type, name }) => type === 'data' && !isOther(name))
  const externalData = await Promise.all(
    data.map(async ({ name, path }) => ({
      path: name.slice(base.length),
      data: await readInside(root, path),
    })),
  )
  const ort = await loadRuntime(runtime())
  const session = await createSession(ort, bytes, { externalData }).catch((cause: unknown) => {
    throw refuseModel(join(root.path, graph.path), cause)
  })
  return { ort, session }
}

const MISSING_OPERATOR =
  /No Op registered|is not a registered function|Could not find an implementation/

/**
 * Opens a graph whose weights are inputs, since the model is too large to open. Resolves with the
 * runtime's reason if it opens only the whole model; otherwise `null`. Rejects with
 * `invalid_request` that names an operator which the runtime lacks.
 */
export async function testGraph(
  graph: Uint8Array,
  { name, runtime }: { name: string; runtime: string },
): Promise<string | null> {
  const ort = await loadRuntime(runtime)
  try {
    const session = await createSession(ort, graph, { graphOptimizationLevel: 'disabled' })
    await session.release()
    return null
  } catch (cause) {
    if (MISSING_OPERATOR.test(InoriginError.from(cause).message)) throw refuseModel(name, cause)
    return toReason(cause)
  }
}

type Runtime = typeof import('onnxruntime-web')

async function loadRuntime(folder: string): Promise<Runtime> {
  const ort = (await import(pathToFileURL(join(folder, 'ort.node.min.mjs')).href)) as Runtime
  ort.env.logLevel = 'fatal'
  ort.env.wasm.numThreads = 1
  return ort
}

const createSession = (
  ort: Runtime,
  graph: Uint8Array,
  options: InferenceSession.SessionOptions,
): Promise<InferenceSession> =>
  ort.InferenceSession.create(graph, {
    executionProviders: ['wasm'],
    logSeverityLevel: 4,
    ...options,
  })

const refuseModel = (name: string, cause: unknown): InoriginError =>
  refuse(
    `The runtime cannot open ${name}: ${toReason(cause)}`,
    'Export the model again without the part that this names. If only WebAssembly lacks it, ' +
      'add the model with --device webgpu.',
    cause,
  )

/** Returns the runtime's error message without the paths and functions of its sources. */
function toReason(thrown: unknown): string {
  const reason = InoriginError.from(thrown)
    .message.replace(/^.*ERROR_MESSAGE: */s, '')
    .replace(/^\S*onnxruntime\/\S+:\d+ .*?\) ?(const )?/s, '')
  return reason.trim().replace(/\.?$/, '.')
}

// Finds inputs with which a model runs, so that the example code works as it is printed.

/** Shapes by input or output with which the model ran. */
export type ExampleShapes = ReadonlyMap<string, readonly number[]>

/**
 * Lengths that are tried for free dimensions, from the smallest. They are those of states, of
 * windows of sound at 16 kHz, of images and of a second of sound.
 */
const FREE_LENGTHS = [1, 2, 16, 64, 224, 512, 1_280, 16_000]

/**
 * Runs the model on zeros of growing shapes until it runs. Resolves with these shapes, or with the
 * failure of the first ones. The inputs are those that the example code has: images and sounds have the
 * sizes of their bindings. Rejects with the reason of the signal, which is read between two runs: a
 * run itself cannot be interrupted.
 */
export async function tryExample(
  session: Pick<InferenceSession, 'inputMetadata' | 'run'>,
  tensor: TensorConstructor,
  signal: AbortSignal,
  bindings: Bindings = {},
): Promise<{ shapes: ExampleShapes; outputs: ExampleShapes; failure?: unknown }> {
  const inputs = session.inputMetadata
  const isFree = inputs.some((one) => one.isTensor && one.shape.some(isFreeLength))
  const lengths = isFree ? FREE_LENGTHS : FREE_LENGTHS.slice(0, 1)
  let failure: unknown
  const tried = lengths.flatMap((length) => listShapes(inputs, length))
  const bound = Object.values(bindings).some(({ text, image, audio }) => text ?? image ?? audio)
  for (const shapes of bound ? tried.map((each) => withBound(each, inputs, bindings)) : tried) {
    signal.throwIfAborted()
    if ([...shapes.values()].some((shape) => countElements(shape) > MAX_EXAMPLE_ELEMENTS)) continue
    try {
      // The runtime would print the errors of shapes that do not fit, which are tried in turn.
      const quiet = { logSeverityLevel: 4 } as const
      const outputs = Object.entries(await session.run(toFeeds(inputs, shapes, tensor), quiet))
      const returned = new Map(outputs.map(([name, { dims }]) => [name, dims]))
      for (const [, output] of outputs) output.dispose()
      return { shapes, outputs: returned }
    } catch (error) {
      failure ??= error
    }
  }
  return { shapes: new Map(), outputs: new Map(), failure }
}

/** Number of tokens of the text in a test. */
const TEXT_TOKENS = 8
/** Side of an image whose size is free, in pixels. */
const IMAGE_SIDE = 224
/** Number of samples of a sound whose length is free: a second of most models of speech. */
const SOUND_SAMPLES = 16_000

/** Returns the shapes with those that the bindings of texts, images and sounds give. */
function withBound(shapes: ExampleShapes, inputs: Tensors, bindings: Bindings): ExampleShapes {
  const next = new Map(shapes)
  const ownOf = (name: string): readonly (number | string)[] => {
    const found = inputs.find((one) => one.name === name)
    return found?.isTensor ? found.shape : []
  }
  for (const { tensor, text, image, audio } of Object.values(bindings)) {
    const names = text ? [tensor, text.mask, text.types] : [tensor]
    for (const name of names) {
      const shape = shapes.get(name ?? '')
      if (name === undefined || !shape) continue
      const isFree = (at: number): boolean => isFreeLength(ownOf(name)[at] ?? '')
      if (text)
        next.set(
          name,
          shape.map((length, at) => (isFree(at) && at > 0 ? TEXT_TOKENS : length)),
        )
      if (image) {
        const size = [image.width ?? IMAGE_SIDE, image.height ?? IMAGE_SIDE] as const
        const wanted = toImageShape(image, shape, size)
        next.set(
          name,
          wanted.map((length, at) => (isFree(at) ? length : (shape[at] ?? length))),
        )
      }
      if (audio) {
        const samples = (audio.window ?? SOUND_SAMPLES) + (audio.context ?? 0)
        const last = shape.length - 1
        next.set(
          name,
          shape.map((length, at) => (isFree(at) && at === last ? samples : length)),
        )
      }
    }
  }
  return next
}

const isFreeLength = (length: number | string): boolean => !isFixedLength(length) || length <= 0

/**
 * Returns the shapes with this length for all free dimensions, and those with it for the last one of a
 * tensor only: others without a name can be batches, as in the state of a recurrent model.
 */
function listShapes(inputs: Tensors, length: number): Map<string, number[]>[] {
  const all = toShapes(inputs, length, length)
  const last = toShapes(inputs, length, 1)
  const isSame = [...all].every(([name, shape]) => shape.join() === last.get(name)?.join())
  return isSame ? [all] : [all, last]
}

/**
 * Returns the shapes with `length` for free dimensions, except for batches, which are 1. Unnamed ones
 * that are not the last get the length `inner`.
 */
function toShapes(inputs: Tensors, length: number, inner: number): Map<string, number[]> {
  const tensors = inputs.filter((one) => one.isTensor)
  const batches = new Set(tensors.flatMap(({ shape }) => (shape.length > 1 ? shape[0] : [])))
  return new Map(
    tensors.map(({ name, shape }) => [
      name,
      shape.map((one, index) => {
        if (!isFreeLength(one)) return Number(one)
        const isNamed = typeof one === 'string' && one !== ''
        const isBatch = isNamed ? batches.has(one) : index === 0
        if (isBatch && shape.length > 1) return 1
        return isNamed || index === shape.length - 1 ? length : inner
      }),
    ]),
  )
}

const toFeeds = (inputs: Tensors, shapes: ExampleShapes, Constructor: TensorConstructor) =>
  Object.fromEntries(
    inputs
      .filter((input) => input.isTensor)
      .map(({ name, type }): [string, Tensor] => {
        const shape = shapes.get(name) ?? []
        const count = countElements(shape)
        if (type === 'string')
          return [name, new Constructor('string', Array<string>(count).fill('text'), shape)]
        const data = new ARRAYS[type as keyof typeof ARRAYS](count)
        if (isSampleRate(name, type))
          data.fill((type === 'int64' ? BigInt(SAMPLE_RATE_HZ) : SAMPLE_RATE_HZ) as never)
        return [name, new Constructor(type as 'float32', data as Float32Array, shape)]
      }),
  )

/** Maximum length of a tensor that the example creates as an array. */
export const MAX_EXAMPLE_ELEMENTS = 2 ** 24

/** Sample rate in the example, which most models of speech expect. */
export const SAMPLE_RATE_HZ = 16_000

// Finds inputs that may be states, or take sound, and names the options that declare them.

type RanModel = Awaited<ReturnType<typeof run>>
type Tensors = InferenceSession['inputMetadata']
type Bindings = Readonly<Record<string, Binding>>

/** Returns a note for the sound and one for the states that an author did not declare. */
export function suggestOptions(model: RanModel, bindings: Bindings, hasStates: boolean): string[] {
  const notes: string[] = []
  const sound = Object.values(bindings).some(({ audio }) => audio) ? undefined : findSound(model)
  if (sound !== undefined)
    notes.push(
      `The input ${sound} may take sound. To let it, name its samples per second, such as ` +
        `--audio ${sound}=${SAMPLE_RATE_HZ}, and the --window that it takes at once.`,
    )
  const states = hasStates ? [] : findStates(model, bindings)
  const options = states.map(([input, output]) => `--state ${input}=${output}`).join(' ')
  if (options !== '')
    notes.push(
      'Inputs and outputs of the same shape may be states. To carry them from one prediction ' +
        `of a session to the next, use ${options}.`,
    )
  return notes
}

const SOUND_NAME = /audio|wave?(form)?$|sound|speech|pcm|^(samples|signal)$/i
const SAMPLE_TYPES = ['float32', 'float16', 'float64', 'int16']

/** Returns the input of samples that its name tells, or that stands beside a sample rate. */
function findSound({ tensors: { inputs }, shapes }: RanModel): string | undefined {
  const tensors = inputs.filter((one) => one.isTensor)
  const hasRate = tensors.some(({ name, type }) => isSampleRate(name, type))
  return tensors.find(({ name, type }) => {
    const shape = shapes.get(name) ?? []
    const [samples = 1, ...others] = shape.toReversed()
    const isRow = samples > 1 && others.length <= 2 && others.every((length) => length === 1)
    return isRow && SAMPLE_TYPES.includes(type) && (hasRate || SOUND_NAME.test(name))
  })?.name
}

/** Returns pairs of an input and the output that may be its next state. */
function findStates({ tensors, shapes, outputs: returned }: RanModel, bindings: Bindings) {
  const inputs = toPorts(tensors.inputs, shapes).filter(({ name }) => !bindings[name]?.image)
  const outputs = toPorts(tensors.outputs, returned)
  const named = inputs.flatMap(({ name, kind }) => {
    const next = outputs.find((one) => one.kind === kind && isNextName(name, one.name))
    return next ? [[name, next.name] as const] : []
  })
  const pairs = named.length > 0 ? named : pairByShape(inputs, outputs)
  // A model whose inputs all come back has no state: it changes them.
  const isWhole = pairs.length === tensors.inputs.length || pairs.length === outputs.length
  return isWhole ? [] : pairs
}

type Ports = ReturnType<typeof toPorts>

/** Returns the names of tensors that may be states, with the type and shape that a state keeps. */
const toPorts = (tensors: Tensors, shapes: ExampleShapes) =>
  tensors.flatMap((one) => {
    const shape = shapes.get(one.name)
    const isState = one.isTensor && shape !== undefined && one.type !== 'string' && shape.length > 0
    return isState ? [{ name: one.name, kind: `${one.type} ${shape.join()}` }] : []
  })

/** Pairs inputs with outputs in their order, if their shape is not that of the first input. */
function pairByShape(inputs: Ports, outputs: Ports) {
  const kinds = new Set(inputs.map(({ kind }) => kind))
  kinds.delete(inputs[0]?.kind ?? '')
  return [...kinds].flatMap((kind) => {
    const befores = inputs.filter((input) => input.kind === kind)
    const afters = outputs.filter((output) => output.kind === kind)
    if (befores.length !== afters.length) return []
    return befores.map(({ name }, index) => [name, afters[index]?.name ?? ''] as const)
  })
}

const BEFORE = /^(in|input|old|past|prev|previous)(?=[_.\d])|[_.](in|input|old|prev)$/gi
const AFTER =
  /^(out|output|new|next|present)(?=[_.\d])|[_.](out|output|new|next|n)$|(?<=[a-z])[nN]$/g

/** Returns `true` for names such as `h` and `hn`, `state` and `stateN`, `cache_in` and `cache_out`. */
function isNextName(input: string, output: string): boolean {
  const stem = input.replace(BEFORE, '')
  return input !== output && stem !== '' && stem === output.replace(AFTER, '')
}

/**
 * Applies the steps to zeros in the shapes of the outputs. Rejects with `invalid_request` that names
 * the output if its labels are missing, or if their number is not that of its classes. Labels are
 * checked even if there are no shapes, because the model did not run.
 */
async function checkSteps(
  bindings: Bindings,
  shapes: ExampleShapes,
  root: ModelRoot,
  items: readonly Item[],
): Promise<void> {
  for (const [name, { tensor, steps = [] }] of Object.entries(bindings)) {
    const open = await Promise.all(
      steps.map(async (step): Promise<OpenStep> => {
        const source = getLabelsSource(step)
        return { step, labels: source ? await readLabels(name, source, root, items) : [] }
      }),
    )
    const shape = shapes.get(tensor)
    const numeric = open.filter(({ step }) => isAlone(step))
    if (!shape || numeric.length === 0) continue
    const zeros = new Float32Array(countElements(shape))
    applySteps({ type: 'float32', data: zeros, shape }, numeric, (why) => {
      throw refuse(`--step ${name}: the output ${why}`, `Correct --labels ${name} or the step.`)
    })
  }
}

async function readLabels(name: string, source: Labels, root: ModelRoot, items: readonly Item[]) {
  const graph = items.find(({ type }) => type === 'onnx')?.path ?? ''
  const names = await readNames(source, {
    async file(path) {
      const item = items.find((one) => one.name === path)
      return item?.text ?? new TextDecoder().decode(await readInside(root, item?.path ?? path))
    },
    metadata: async (key) =>
      readMetadata(new Blob([(await readInside(root, graph)) as BlobPart]), key),
  })
  if (names) return names
  const what =
    'file' in source
      ? source.file
      : `the metadata${'metadata' in source ? ` ${source.metadata}` : ''} of the model`
  throw refuse(`--labels ${name}: ${what} has no labels.`, 'Name another file or key.')
}

/**
 * Binds the entry as a browser does. Throws `invalid_request` that names the parameter, also if an
 * output did not have the shape that its input needs next. Texts are not tokenized.
 */
function checkBindings(
  { signature, states: declared }: Pick<PredictorEntry, 'signature' | 'states'>,
  bindings: Bindings,
  decoder: Implementation['decoder'],
  { tensors, outputs: shapes }: RanModel,
): void {
  const all = Object.values(bindings)
  const names = all.flatMap(({ text }) => text?.tokenizer ?? [])
  const tokenizer: TextTokenizer = {
    tokenize: () => ({ ids: [], types: [] }),
    locate: () => [],
    decode: () => '',
    idOf: () => undefined,
  }
  const tokenizers = new Map(names.map((name) => [name, tokenizer]))
  const sources = all.flatMap(({ steps = [] }) => steps.map(getLabelsSource))
  const labels = new Map(sources.flatMap((one) => (one ? [[toLabelsKey(one), []]] : [])))
  const runs = { id: 'wasm', engine: 'onnx', device: 'wasm' } as const
  const implementation = { ...runs, resources: [], bindings: { ...bindings }, decoder }
  const named = { type: 'predictor', tag: '@drafted/model', name: '', created: '' } as const
  const states = declared && { states: declared }
  const entry = { ...named, signature, implementations: [implementation], ...states }
  const bound = bindOrRefuse(() =>
    bindSignature(entry, implementation, tensors, { labels, tokenizers }),
  )
  for (const { input, output } of bound.states) {
    const wanted = bound.inputs.find(({ parameter }) => parameter.name === input)?.spec.shape
    const next = bound.outputs.find(({ parameter }) => parameter.name === output)
    const shape = shapes.get(next?.tensor ?? '')
    if (!wanted || !shape || fitsShape(shape, wanted)) continue
    const lengths = wanted.map((length) => length ?? 'any').join(', ')
    throw refuse(
      `--state ${input}=${output}: ${output} has the shape [${shape.join(', ')}], but ${input} takes [${lengths}].`,
      'Name the output of the next state.',
    )
  }
}

function bindOrRefuse<T>(bind: () => T): T {
  try {
    return bind()
  } catch (cause) {
    const { message } = InoriginError.from(cause)
    const [, why = message] = /cannot run: (.*) Its catalog entry/s.exec(message) ?? []
    throw refuse(`The draft does not fit the model: ${why}`, 'Correct the options.', cause)
  }
}
