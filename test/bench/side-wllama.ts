/** wllama, which is llama.cpp in WebAssembly, as its documentation uses it. */
import { LoggerWithoutDebug, Wllama } from '@wllama/wllama/esm/index.js'
import { type GgufFormat, ggufPath, SHAPES } from './models/shapes.ts'
import { characterOf, countCharacters } from './models/tokenizer.ts'
import { serveSide, type OnPiece, type Task } from './side.ts'

let wllama: Wllama

serveSide({
  async open({ model, format, threads }) {
    const runtime = { default: `${location.origin}/bench/wllama/wllama.wasm` }
    wllama = new Wllama(runtime, { suppressNativeLog: true, logger: LoggerWithoutDebug })
    wllama.setCompat(null)
    const file = await fetch(`/bench/models/${model}/${ggufPath(format as GgufFormat)}`)
    await wllama.loadModel([await file.blob()], {
      n_gpu_layers: 0,
      n_threads: threads,
      n_ctx: SHAPES[model].context,
      // One conversation at a time, so that the second turn finds the cache of the first.
      n_parallel: 1,
    })
    if (wllama.getNumThreads() !== threads) {
      throw new Error(`wllama has ${wllama.getNumThreads()} threads.`)
    }
  },
  continue: answer,
})

async function answer(
  tokens: readonly number[],
  { answer: count }: Pick<Task, 'answer'>,
  onPiece: OnPiece,
): Promise<void> {
  await wllama.createCompletion({
    prompt: tokens.map(characterOf).join(''),
    max_tokens: count,
    temperature: 0,
    ignore_eos: true,
    stream: true,
    onData({ choices, usage }) {
      if (usage && usage.prompt_tokens !== tokens.length) {
        throw new Error(`wllama made ${usage.prompt_tokens} tokens of ${tokens.length}.`)
      }
      const text = choices[0]?.text ?? ''
      if (text !== '') onPiece(text, countCharacters(text))
    },
  })
}
