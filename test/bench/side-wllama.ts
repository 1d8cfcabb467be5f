/** wllama, which is llama.cpp in WebAssembly, as its documentation uses it. */
import { LoggerWithoutDebug, Wllama } from '@wllama/wllama/esm/index.js'
import { contextOf, type GgufFormat, ggufPath } from './models/shapes.ts'
import { characterOf } from './models/tokenizer.ts'
import { serveSide, type OnPiece, type Task } from './side.ts'

let wllama: Wllama

serveSide({
  async open({ model, format, device, threads }) {
    const runtime = { default: `${location.origin}/bench/wllama/wllama.wasm` }
    // Its log alone tells where it computes.
    const log: string[] = []
    const note = (...line: unknown[]): unknown => log.push(line.join(' '))
    wllama = new Wllama(runtime, {
      suppressNativeLog: device === 'wasm',
      logger:
        device === 'wasm'
          ? LoggerWithoutDebug
          : { debug: note, log: note, warn: note, error: note },
    })
    wllama.setCompat(null)
    const file = await fetch(`/bench/models/${model}/${ggufPath(format as GgufFormat)}`)
    await wllama.loadModel([await file.blob()], {
      // More than any model has.
      n_gpu_layers: device === 'webgpu' ? 999 : 0,
      n_threads: threads,
      n_ctx: contextOf(model),
      // One conversation at a time, so that the second turn finds the cache of the first.
      n_parallel: 1,
    })
    if (wllama.getNumThreads() !== threads) {
      throw new Error(`wllama has ${wllama.getNumThreads()} threads.`)
    }
    if (device === 'wasm') return
    if (!log.some((line) => /offloaded [1-9]\d*\/\d+ layers/.test(line)))
      throw new Error('wllama found no GPU that it can use, so it computes on the CPU.')
    // A GPU compiles shaders for the first answer.
    await answer([1], { answer: 2 }, () => undefined)
  },
  continue: answer,
  // After each token, it computes the one that is not in its cache.
  async force({ prompt, texts }) {
    const best: (number | null)[] = []
    for (const [at, text] of texts.entries()) {
      if (text === null) {
        best.push(null)
        continue
      }
      const options = { prompt: text, max_tokens: 1, temperature: 0, logprobs: 1 }
      const { choices, usage } = await wllama.createCompletion(options)
      assertLength(usage.prompt_tokens, prompt.length + at)
      // Its types name other fields.
      const found = choices[0]?.logprobs as unknown as { content?: { id: number }[] } | null
      const token = found?.content?.[0]?.id
      if (token === undefined) throw new Error(`wllama chose ${JSON.stringify(choices)}.`)
      best.push(token)
    }
    return best
  },
})

function assertLength(count: number, wanted: number): void {
  if (count !== wanted) throw new Error(`wllama made ${count} tokens of ${wanted}.`)
}

async function answer(
  tokens: readonly number[],
  { answer: count, given }: Pick<Task, 'answer' | 'given'>,
  onPiece: OnPiece,
): Promise<void> {
  let prompt: number | undefined
  await wllama.createCompletion({
    prompt: given?.text ?? tokens.map(characterOf).join(''),
    max_tokens: count,
    temperature: 0,
    ignore_eos: true,
    stream: true,
    onData({ choices, usage }) {
      prompt ??= usage?.prompt_tokens
      const text = choices[0]?.text ?? ''
      // Each token of a made model is a character, and each of the real one a chunk of the stream.
      if (text !== '') onPiece(text, given ? 1 : [...text].length)
    },
  })
  // An error in the function above would not end the request.
  assertLength(prompt ?? NaN, tokens.length)
}
