/**
 * Loads a predictor and runs predictions: inputs by name in, outputs by name out. Errors name the
 * input, or the part of the catalog entry, that is wrong. Files of this folder import the ONNX
 * engine, the catalog, the device and values, but nothing of a host.
 */
import type { Implementation, PredictorEntry } from '../catalog/schema.ts'
import type { GpuComparison } from '../device/gpu-verdict.ts'
import { requestGpu } from '../device/gpu.ts'
import type { Files } from '../engine/engine.ts'
import { pruneGraph, readOperations } from '../engine/onnx/graph-file.ts'
import {
  createWindow,
  ELEMENT_TYPES,
  fieldsOfGraph,
  GRAPH,
  TENSOR_TYPE,
  textsOf,
  TYPE,
  VALUE,
  valuesOf,
} from '../engine/onnx/protobuf.ts'
import { loadRuntime, type Runtime, type Session } from '../engine/onnx/runtime.ts'
import type { Ort } from '../engine/onnx/tensor.ts'
import { Yielder } from '../engine/run/yielder.ts'
import { InoriginError } from '../error.ts'
import type {
  Device,
  PredictionResult,
  SessionPrediction,
  Tag,
  TranscribeOptions,
  TranscriptionEvent,
} from '../types/index.ts'
import { throwPredictorUnusable } from '../values/input-errors.ts'
import { unlessAborted } from '../values/promises.ts'
import type { Sound } from './audio.ts'
import { bindSignature, type BoundSignature, ENCODED } from './bind.ts'
import { type Carried, planOneRun, type PlannedRuns, planRuns, toNextTensors } from './carry.ts'
import { type ChoiceSource, findChoiceSource, withOutputs } from './chosen-from.ts'
import { GpuCheck, type ReferenceSession } from './gpu-check.ts'
import { openLabels } from './labels.ts'
import { parseInputs } from './parse-inputs.ts'
import {
  assertNotAborted,
  cancelledError,
  decodeRuns,
  type GraphRun,
  runGraph,
} from './run-graph.ts'
import { listOtherTensors } from './steps.ts'
import { openTokenizers, type Tokenizers, tokenizeText, type TokenRow } from './text.ts'
import type { GraphFiles } from './writer/decoder-session.ts'
import type { TextWriter } from './writer/text-writer.ts'
import type { Transcriber } from './writer/transcriber.ts'

/** Options of {@link openPredictor}. They can be posted to the worker that runs the predictor. */
export interface PredictorSetup {
  entry: PredictorEntry
  /** Chosen implementation of the entry. */
  implementation: Implementation
  files: Files
  device: Device
  /** URL of the folder with the runtime's wasm files, with a trailing slash. */
  runtime: string
  /** Number of WASM threads of a page that can have several. Default: a guess. */
  threads?: number
}

/**
 * Loads a predictor. Rejects with `unavailable` if its files, its entry or the device cannot be
 * used, after freeing everything. With `onComparison`, which receives the result, its first outputs
 * on `webgpu` are compared with those of the CPU.
 */
export async function openPredictor(
  setup: PredictorSetup,
  signal?: AbortSignal,
  onComparison?: (comparison: GpuComparison) => void,
): Promise<OpenPredictor> {
  const { entry, implementation, files, device, runtime: folder, threads } = setup
  const cleanups: (() => unknown)[] = []
  const free = async (): Promise<void> => {
    for (const step of cleanups.toReversed()) await step()
  }
  try {
    assertNotAborted(signal)
    const gpu = device === 'webgpu' ? (await requestGpu(implementation.requires)).device : undefined
    cleanups.push(() => gpu?.destroy())
    const runtime = await loadRuntime({ device, folder, gpu, threads })
    cleanups.push(() => runtime.release())
    assertNotAborted(signal)
    const { graph, externalData } = await getInputGraph(setup)
    const session = await openSession(entry.tag, graph, () =>
      runtime.createSession(graph, { externalData }),
    )
    cleanups.push(() => session.release())
    let run: GpuCheck['run'] = async (feeds, wanted) => ({
      results: await session.run(feeds, wanted),
      device,
    })
    if (device === 'webgpu' && onComparison) {
      const check = new GpuCheck({
        session,
        openReference: (wanted) =>
          openReference(session, wanted, graph, (adapted) =>
            runtime.createSession(adapted, { externalData, onCpu: true }),
          ),
        onComparison,
      })
      cleanups.push(() => check.release())
      run = (feeds, wanted) => check.run(feeds, wanted)
    }
    assertNotAborted(signal)
    const [tokenizers, labels] = await Promise.all([
      openTokenizers(entry, implementation, files),
      openLabels(entry, implementation, files),
    ])
    const bound = bindSignature(entry, implementation, session, { tokenizers, labels })
    const { writer, transcriber } = await openDecoder(setup, { runtime, bound, tokenizers, run })
    cleanups.push(() => (writer ?? transcriber)?.release())
    const { ort } = runtime
    return new OpenPredictor({ entry, device, ort, run, bound, writer, transcriber, free })
  } catch (thrown) {
    await free().catch(() => undefined)
    throw thrown
  }
}

interface PredictorParts {
  entry: PredictorEntry
  bound: BoundSignature
  ort: Ort
  run: GpuCheck['run']
  /** Decoder that writes the text of an encoder-decoder; absent for another model. */
  writer?: TextWriter | undefined
  /** Decoder that writes down speech; absent for another model. */
  transcriber?: Transcriber | undefined
  /** Device of predictions, unless `run` reports another one. */
  device: Device
  /** Frees the model. */
  free(): Promise<void>
}

/** Loaded predictor. Concurrent calls are queued, and each may need several runs of the graph. */
export class OpenPredictor {
  readonly #parts: PredictorParts
  readonly #yielder = new Yielder()
  #last: Promise<unknown> = Promise.resolve()
  #closing: Promise<void> | null = null

  constructor(parts: PredictorParts) {
    this.#parts = parts
  }

  /**
   * Runs one prediction. Rejects with `invalid_request` that names the invalid input. Rejects with
   * `aborted` at once, although a run that has started still completes. `onText` gets the text that is written,
   * as far as it is, a few times a second.
   */
  predict(
    inputs: unknown,
    signal: AbortSignal,
    onText?: (text: string) => void,
  ): Promise<PredictionResult> {
    return this.#runAlone(planRuns(this.#parts, inputs, null), signal, onText)
  }

  /** Runs the next prediction of a session, from the state before it; `null` for the first. */
  predictNext(
    inputs: unknown,
    carried: Carried | null,
    signal: AbortSignal,
  ): Promise<SessionPrediction> {
    const before = carried ?? { tensors: {}, sound: null }
    return this.#run(planRuns(this.#parts, inputs, before), before, signal)
  }

  /**
   * Tokenizes a text for that input, or a pair of texts. `isCut` says whether tokens beyond the maximum
   * are left out; default: as the binding does. Throws `invalid_request` if the tokenizer cannot.
   */
  tokenize(
    name: string,
    text: string,
    path: string,
    { pair, isCut }: { pair?: string; isCut?: boolean | undefined } = {},
  ): TokenRow {
    const { bound, entry } = this.#parts
    const spec = bound.inputs.find(({ parameter }) => parameter.name === name)?.spec.text
    if (!spec) return throwPredictorUnusable(entry.tag, `inputs.${name}`, 'takes no text.')
    const side = isCut ? (spec.layout.truncate ?? 'end') : null
    return tokenizeText(text, spec, path, { pair, ...(isCut !== undefined && { cut: side }) })
  }

  /** Runs one prediction from tokenized texts. Inputs that `others` lacks get their defaults. */
  async predictTokens(
    name: string,
    rows: readonly TokenRow[],
    signal: AbortSignal,
    others: Readonly<Record<string, unknown>> = {},
  ): Promise<PredictionResult> {
    const { signature } = this.#parts.entry
    const inputs = signature.inputs.filter((parameter) => parameter.name !== name)
    const checked = parseInputs({ ...signature, inputs }, others).set(name, {
      form: 'tokens',
      rows,
    })
    return this.#runAlone(Promise.resolve(planOneRun(() => checked)), signal)
  }

  /**
   * Yields the text of speech in pieces as it is written, and all of it at the end. Throws as
   * {@link OpenPredictor.predict} rejects.
   */
  async *transcribe(
    sound: Sound,
    options: TranscribeOptions,
    signal: AbortSignal,
  ): AsyncGenerator<TranscriptionEvent> {
    const { bound, transcriber, entry } = this.#parts
    const name = bound.sound?.parameter.name
    if (!transcriber || name === undefined)
      return throwPredictorUnusable(entry.tag, 'decoder', 'has no `speech`.')
    const planned = await planRuns(this.#parts, { [name]: sound }, null)
    assertNotAborted(signal)
    this.#assertOpen()
    const before = this.#last
    let finish = (): void => undefined
    const turn = new Promise<void>((resolve) => (finish = resolve))
    this.#last = before.then(() => turn)
    try {
      await unlessAborted(before, signal, () => cancelledError(signal))
      const pause = () => this.#pause(signal)
      const checked = planned.check(0, {})
      const { device: _, ...transcript } = yield* transcriber.transcribe(checked, options, pause)
      yield { type: 'finish', transcript }
    } finally {
      finish()
    }
  }

  /** Frees the model after the current run. */
  close(): Promise<void> {
    this.#closing ??= this.#last.then(() => {
      this.#yielder.close()
      return this.#parts.free()
    })
    return this.#closing
  }

  async #runAlone(
    planned: Promise<PlannedRuns>,
    signal: AbortSignal,
    onText?: (text: string) => void,
  ): Promise<PredictionResult> {
    const { state: _, ...result } = await this.#run(planned, null, signal, onText)
    return result
  }

  /** Runs a plan in its turn, or rejects at once. `carried` is `null` for a call on its own. */
  async #run(
    planned: Promise<PlannedRuns>,
    carried: Carried | null,
    signal: AbortSignal,
    onText?: (text: string) => void,
  ): Promise<SessionPrediction> {
    const { tag } = this.#parts.entry
    const planning = planned.then((plan) => ({ plan, start: performance.now() }))
    // The turn reports the same error later.
    planning.catch(() => undefined)
    assertNotAborted(signal)
    this.#assertOpen()
    const queued = this.#last.then(async () =>
      this.#runAll((await planning).plan, carried, signal, onText),
    )
    this.#last = queued.catch(() => undefined)
    const done = Promise.all([planning, queued])
    const [{ start }, ran] = await unlessAborted(done, signal, () => cancelledError(signal))
    return { tag, ...ran, latency: performance.now() - start }
  }

  #assertOpen(): void {
    const { tag } = this.#parts.entry
    if (this.#closing)
      throw new InoriginError('unavailable', `${tag} has been unloaded. Load it again.`)
  }

  /** Lets the worker receive abort messages between two runs. */
  async #pause(signal: AbortSignal): Promise<void> {
    await this.#yielder.next()
    assertNotAborted(signal)
  }

  async #runAll(
    planned: PlannedRuns,
    carried: Carried | null,
    signal: AbortSignal,
    onText?: (text: string) => void,
  ) {
    const { ort, run, bound, writer, transcriber } = this.#parts
    const pause = (): Promise<void> => this.#pause(signal)
    const report = onText && createReport(onText)
    if (transcriber) {
      const written = await transcriber.predict(planned.check(0, {}), pause, report)
      return { ...written, state: { tensors: {}, sound: null } }
    }
    let { device } = this.#parts
    let tensors = carried?.tensors ?? {}
    const runs: GraphRun[] = []
    for (let index = 0; index < planned.count; index++) {
      await pause()
      const given = planned.check(index, tensors)
      const checked = writer?.prepare(given) ?? given
      const ran = await runGraph(ort, run, bound, checked, signal)
      device = ran.device
      tensors = toNextTensors(bound.states, ran.outputs)
      runs.push(writer ? await writer.write(ran, checked, pause, report) : ran)
    }
    const outputs = decodeRuns(bound, runs, planned.isWindowed, carried !== null)
    const state = { tensors, sound: planned.sound ?? carried?.sound ?? null }
    return { outputs, state, device }
  }
}

/** Minimum time in milliseconds between two reports of a text. */
const REPORT_MS = 50

/** Returns a function that passes a text on unless the one before was passed on just now. */
function createReport(onText: (text: string) => void): (toText: () => string) => void {
  let last = -Infinity
  return (toText) => {
    const now = performance.now()
    if (now - last < REPORT_MS) return
    last = now
    onText(toText())
  }
}

/** Resolves with the graph of the inputs, of which only the declared outputs are computed. */
async function getInputGraph(setup: PredictorSetup): Promise<GraphFiles> {
  const {
    entry: { tag, signature },
    implementation: { resources, bindings = {}, decoder },
  } = setup
  const graphs = resources.filter(({ type }) => type === 'onnx')
  const [only, ...others] = decoder ? [{ name: decoder.encoder }] : graphs
  if (!only || others.length)
    throwPredictorUnusable(tag, 'resources', 'exactly one must be of type onnx.')
  const { graph, externalData } = getGraphFiles(setup, only.name)
  const declared = signature.outputs.flatMap(({ name }) => {
    if (decoder?.speech || name === decoder?.output) return [ENCODED]
    const { tensor = name, steps = [] } = bindings[name] ?? {}
    return [tensor, ...steps.flatMap(listOtherTensors)]
  })
  return { graph: await pruneGraph(graph, new Set(declared)), externalData }
}

/** Returns a graph and its weights. Those that have the name of another graph are left out. */
function getGraphFiles({ entry, implementation, files }: PredictorSetup, name: string): GraphFiles {
  const { resources } = implementation
  const file = (path: string) =>
    files.get(path) ??
    throwPredictorUnusable(entry.tag, `resources.${path}`, 'the file is missing.')
  const folder = name.slice(0, name.lastIndexOf('/') + 1)
  const isOther = (path: string): boolean =>
    resources.some((one) => one.type === 'onnx' && one.name !== name && path.startsWith(one.name))
  const externalData = resources
    .filter((one) => one.type === 'data' && !isOther(one.name))
    .map((one) => ({ path: one.name.replace(folder, ''), data: file(one.name) }))
  return { graph: file(name), externalData }
}

/** Opened parts of a predictor, for its decoder. */
interface DecoderParts extends Pick<PredictorParts, 'bound' | 'run'> {
  runtime: Runtime
  tokenizers: Tokenizers
}

/** Resolves with the decoder that writes the text, if there is one. */
async function openDecoder(
  setup: PredictorSetup,
  { runtime, bound, tokenizers, run }: DecoderParts,
): Promise<Pick<PredictorParts, 'writer' | 'transcriber'>> {
  const { decoder: layout } = setup.implementation
  const tokenizer = layout && tokenizers.get(layout.tokenizer)
  if (!layout || !tokenizer) return {}
  const graphFiles = (name: string): GraphFiles => getGraphFiles(setup, name)
  const own = { tag: setup.entry.tag, layout, bound, tokenizer, runtime, graphFiles }
  // Few predictors write text, so the code is only loaded for them.
  if (layout.speech) {
    const { Transcriber: Opened } = await import('./writer/transcriber.ts')
    return { transcriber: await Opened.open(own, run) }
  }
  const { TextWriter: Opened } = await import('./writer/text-writer.ts')
  return { writer: await Opened.open(own) }
}

async function openSession(tag: Tag, graph: Blob, open: () => Promise<Session>) {
  try {
    return await open()
  } catch (thrown) {
    const foreign = await findUnsupportedTensor(graph)
    if (!foreign) throw thrown
    const { side, name, type } = foreign
    const what = `the model's ${name} is ${type}, which the runtime does not support in browsers.`
    throwPredictorUnusable(tag, `${side}.${name}`, `${what} Cast it inside the model.`, thrown)
  }
}

/**
 * Resolves with a session on the CPU, with further outputs: what the integer and boolean ones of
 * `wanted` were chosen from. `open` opens one with the graph `model` or an adapted copy of it.
 */
async function openReference(
  gpuSession: Session,
  wanted: readonly string[],
  model: Blob,
  open: (adapted: Blob) => Promise<Session>,
): Promise<ReferenceSession> {
  const chosen = gpuSession.outputs.filter(
    (output) => output.isTensor && wanted.includes(output.name) && !output.type.startsWith('float'),
  )
  const operations = chosen.length > 0 ? await readOperations(model) : []
  const sources = new Map<string, ChoiceSource>()
  for (const { name } of chosen) {
    const source = findChoiceSource(operations, name)
    if (source) sources.set(name, source)
  }
  const extra = new Set([...sources.values()].flatMap(({ tensors }) => tensors))
  for (const { name } of gpuSession.outputs) extra.delete(name)
  if (extra.size === 0) return { session: await open(model), sources }
  try {
    return { session: await open(withOutputs(model, extra)), sources }
  } catch {
    // A tensor inside a branch cannot be an output. Without them, all differences count.
    return { session: await open(model), sources: new Map() }
  }
}

/** Resolves with the first tensor of a type that the runtime does not support in JavaScript. */
async function findUnsupportedTensor(model: Blob) {
  const file = createWindow(model)
  for await (const { number, from, to } of fieldsOfGraph(file, model.size)) {
    if (number !== GRAPH.input && number !== GRAPH.output) continue
    const side = number === GRAPH.input ? 'inputs' : 'outputs'
    const value = await file.read(from, to)
    const [element] = valuesOf(value, VALUE.type)
      .flatMap((type) => valuesOf(type, TYPE.tensor))
      .flatMap((tensor) => valuesOf(tensor, TENSOR_TYPE.element))
    const type = element?.[0] ?? 0
    // All types with lower numbers are supported.
    if (type >= ELEMENT_TYPES.indexOf('complex64') && ELEMENT_TYPES[type] !== undefined)
      return { side, name: textsOf(value, VALUE.name)[0], type: ELEMENT_TYPES[type] }
  }
  return null
}
