/** transformers.js, as its documentation uses it. */
import {
  AutoModelForCausalLM,
  type DataType,
  env,
  LogitsProcessor,
  LogitsProcessorList,
  type PreTrainedModel,
  Tensor,
} from '@huggingface/transformers'
import { describeAdapter, isTrusted } from '../../src/device/adapter.ts'
import { createDetokenizerFactory, type Detokenizer } from '../../src/engine/text/vocabulary.ts'
import { onnxPath, type OnnxFormat, REAL_MODEL } from './models/shapes.ts'
import { serveSide, type OnPiece, type Task } from './side.ts'

env.allowLocalModels = true
env.allowRemoteModels = false
env.localModelPath = '/bench/models/'
env.useBrowserCache = false
const { wasm } = env.backends.onnx
if (wasm) wasm.wasmPaths = `${location.origin}/bench/ort/`

/** Its device, without `subgroups` on an adapter of software, and without what rests on them: as ours. */
if (navigator.gpu) {
  const request = GPUAdapter.prototype.requestDevice
  GPUAdapter.prototype.requestDevice = function (descriptor) {
    const all = Array.from(descriptor?.requiredFeatures ?? [])
    return request.call(this, {
      ...descriptor,
      requiredFeatures: describeAdapter(this).software ? all.filter(isTrusted) : all,
    })
  }
}

let model: PreTrainedModel
let openText: () => Detokenizer

serveSide({
  async open({ model: name, format, device, threads }) {
    // Its own choice is half of the cores.
    if (wasm) wasm.numThreads = threads
    // Not every form of the real model is a precision that it has a name for.
    const file = onnxPath(format as OnnxFormat).replace(/^onnx\/|\.onnx$/g, '')
    model = await AutoModelForCausalLM.from_pretrained(name, {
      device,
      ...(name === REAL_MODEL
        ? { dtype: 'fp32', model_file_name: file, use_external_data_format: true }
        : { dtype: format as DataType }),
    })
    const tokenizer = await fetch(`/bench/models/${name}/tokenizer.json`)
    openText = createDetokenizerFactory(await tokenizer.json(), {})
    // Ready when the first answer costs no more than the second, as on the other side.
    await answer([1], { answer: 2 }, () => undefined)
  },
  continue: answer,
  async force({ prompt, answer: tokens }) {
    const forcing = new Forcing(tokens)
    const processors = new LogitsProcessorList()
    processors.push(forcing)
    await model.generate({
      ...inputsOf(prompt),
      max_new_tokens: tokens.length,
      do_sample: false,
      logits_processor: processors,
    } as never)
    return forcing.best
  },
})

/** Notes the best token of each step, and has another one chosen. */
class Forcing extends LogitsProcessor {
  readonly best: number[] = []
  readonly #tokens: readonly number[]

  constructor(tokens: readonly number[]) {
    super()
    this.#tokens = tokens
  }

  override _call(_ids: bigint[][], logits: Tensor) {
    const row = logits.data as Float32Array
    const token = this.#tokens[this.best.length] ?? 0
    this.best.push(row.reduce((best, logit, id) => (logit > (row[best] ?? NaN) ? id : best), 0))
    row.fill(-Infinity)
    row[token] = 0
    return logits
  }
}

function inputsOf(tokens: readonly number[]) {
  const dims = [1, tokens.length]
  return {
    input_ids: new Tensor('int64', BigInt64Array.from(tokens, BigInt), dims),
    attention_mask: new Tensor('int64', new BigInt64Array(tokens.length).fill(1n), dims),
  }
}

async function answer(
  tokens: readonly number[],
  { answer: count }: Pick<Task, 'answer'>,
  onPiece: OnPiece,
): Promise<void> {
  const text = openText()
  let prompt = true
  await model.generate({
    ...inputsOf(tokens),
    max_new_tokens: count,
    min_new_tokens: count,
    do_sample: false,
    streamer: {
      put([ids]: bigint[][]) {
        // The prompt comes first.
        if (!prompt) for (const id of ids ?? []) onPiece(text.push(Number(id)), 1)
        prompt = false
      },
      end: () => undefined,
    },
  } as never)
}
