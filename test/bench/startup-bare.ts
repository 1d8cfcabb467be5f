/**
 * What the bench of second visits compares with: a page with the runtime alone. It has no service
 * worker, no host, no store and no tokenizer, and answers the tokens of a prompt with one token.
 */
import { env, InferenceSession, Tensor } from 'onnxruntime-web/wasm'
import { type OwnTimes, readTimes, sendReport } from './startup-times.ts'

/** Lengths of `@inorigin/guide`, from its `config.json`. */
const LAYERS = 6
const KV_HEADS = 3
const HEAD_LENGTH = 32

/** Tokens of the prompt, about those of a short question. */
const PROMPT_TOKENS = 24

/** Computes one token and reports its time to the web server. */
export async function visitBare(graph: string, runtime: string): Promise<void> {
  performance.mark('script')
  await sendReport(answer(graph, runtime))
}

async function answer(graph: string, runtime: string): Promise<OwnTimes[]> {
  env.wasm.wasmPaths = runtime
  env.wasm.numThreads = 1
  const file = await (await fetch(graph)).arrayBuffer()
  const session = await InferenceSession.create(file)
  const integers = (values: number[], dims: number[]): Tensor =>
    new Tensor('int64', BigInt64Array.from(values, BigInt), dims)
  const cache = Array.from({ length: LAYERS }, (_, layer) =>
    ['key', 'value'].map((part): [string, Tensor] => [
      `past_key_values.${layer}.${part}`,
      new Tensor('float32', new Float32Array(0), [1, KV_HEADS, 0, HEAD_LENGTH]),
    ]),
  )
  const ones = Array<number>(PROMPT_TOKENS).fill(1)
  const { logits } = await session.run({
    input_ids: integers(ones, [1, PROMPT_TOKENS]),
    attention_mask: integers(ones, [1, PROMPT_TOKENS]),
    num_logits_to_keep: integers([1], []),
    ...Object.fromEntries(cache.flat()),
  })
  const scores = logits?.data as Float32Array
  if (!Number.isFinite(Math.max(...scores))) throw new Error('The logits are not numbers.')
  performance.mark('first token')
  return [readTimes()]
}
