/** transformers.js, as its documentation uses it. */
import {
  AutoModelForCausalLM,
  type DataType,
  env,
  type PreTrainedModel,
  Tensor,
} from '@huggingface/transformers'
import { isTrusted } from '../../src/device/adapter.ts'
import { createDetokenizerFactory, type Detokenizer } from '../../src/engine/text/vocabulary.ts'
import { serveSide, type OnPiece, type Task } from './side.ts'

env.allowLocalModels = true
env.allowRemoteModels = false
env.localModelPath = '/bench/models/'
env.useBrowserCache = false
const { wasm } = env.backends.onnx
if (wasm) wasm.wasmPaths = `${location.origin}/bench/ort/`

/** Its device without `subgroups` too, and without what rests on them: as ours. */
if (navigator.gpu) {
  const request = GPUAdapter.prototype.requestDevice
  GPUAdapter.prototype.requestDevice = function (descriptor) {
    const all = Array.from(descriptor?.requiredFeatures ?? [])
    return request.call(this, {
      ...descriptor,
      requiredFeatures: all.filter(isTrusted),
    })
  }
}

let model: PreTrainedModel
let openText: () => Detokenizer

serveSide({
  async open({ model: name, format, device, threads }) {
    // Its own choice is half of the cores.
    if (wasm) wasm.numThreads = threads
    model = await AutoModelForCausalLM.from_pretrained(name, { dtype: format as DataType, device })
    const tokenizer = await fetch(`/bench/models/${name}/tokenizer.json`)
    openText = createDetokenizerFactory(await tokenizer.json(), {})
    // Ready when the first answer costs no more than the second, as on the other side.
    await answer([1], { answer: 2 }, () => undefined)
  },
  continue: answer,
})

async function answer(
  tokens: readonly number[],
  { answer: count }: Pick<Task, 'answer'>,
  onPiece: OnPiece,
): Promise<void> {
  const dims = [1, tokens.length]
  const text = openText()
  let prompt = true
  await model.generate({
    input_ids: new Tensor('int64', BigInt64Array.from(tokens, BigInt), dims),
    attention_mask: new Tensor('int64', new BigInt64Array(tokens.length).fill(1n), dims),
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
