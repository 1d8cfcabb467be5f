/** WebLLM with a library that MLC compiled, as its documentation uses it. */
import { CreateMLCEngine, type MLCEngineInterface } from '@mlc-ai/web-llm'
import { characterOf } from './models/tokenizer.ts'
import { contextOf } from './models/shapes.ts'
import { serveSide, type OnPiece, type Task } from './side.ts'

let engine: MLCEngineInterface

serveSide({
  async open({ model }) {
    const folder = `${location.origin}/bench/mlc/${model}`
    const record = {
      model: `${folder}/resolve/main/`,
      model_id: model,
      model_lib: `${folder}/library.wasm`,
      overrides: { context_window_size: contextOf(model) },
    }
    engine = await CreateMLCEngine(model, {
      appConfig: { model_list: [record], cacheBackend: 'cache' },
    })
    await answer([1], { answer: 2 }, () => undefined)
  },
  continue: answer,
  force: () => Promise.reject(new Error('WebLLM takes no answer that is forced.')),
})

async function answer(
  tokens: readonly number[],
  { answer: count }: Pick<Task, 'answer'>,
  onPiece: OnPiece,
): Promise<void> {
  const chunks = await engine.completions.create({
    prompt: tokens.map(characterOf).join(''),
    max_tokens: count,
    temperature: 0,
    ignore_eos: true,
    stream: true,
    stream_options: { include_usage: true },
  })
  let prompt: number | undefined
  for await (const { choices, usage } of chunks) {
    prompt = usage?.prompt_tokens ?? prompt
    const text = choices[0]?.text ?? ''
    // Each token is a character.
    if (text !== '') onPiece(text, [...text].length)
  }
  if (prompt !== tokens.length) throw new Error(`WebLLM made ${prompt} tokens of ${tokens.length}.`)
}
