// Compares the files of the model, as JavaScript libraries read them, with what Python wrote to cases.json.
// node check.mjs CASES [MODEL_DIR]; needs @huggingface/tokenizers, @huggingface/jinja and onnxruntime-web.
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { Template } from '@huggingface/jinja'
import { Tokenizer } from '@huggingface/tokenizers'
import * as ort from 'onnxruntime-web/wasm'

const [cases, folder = new URL('..', import.meta.url).pathname] = process.argv.slice(2)
const json = (path) => JSON.parse(readFileSync(path, 'utf8'))
const { strings, chats, model } = json(cases)
const config = json(resolve(folder, 'tokenizer_config.json'))
const tokenizer = new Tokenizer(json(resolve(folder, 'tokenizer.json')), config)
let wrong = 0
const expect = (same, what) => same || (wrong++ < 5 && console.log('DIFFERS', what))

for (const { text, ids } of strings) {
  const got = tokenizer.encode(text, { add_special_tokens: false }).ids
  expect(got.join() === ids.join(), JSON.stringify(text))
  if (ids.length)
    expect(
      tokenizer.decode(ids, { skip_special_tokens: false }) === text,
      'decode ' + JSON.stringify(text),
    )
}
console.log(`${strings.length} strings encoded and decoded, ${wrong} wrong`)

const template = new Template(config.chat_template)
for (const { text, tools, ...chat } of chats) {
  const got = template.render({ ...chat, ...(tools && { tools }) })
  expect(got === text, `chat\n${got}\n--- expected\n${text}`)
}
console.log(`${chats.length} chats rendered, ${wrong} wrong so far`)

ort.env.wasm.numThreads = 1
const session = await ort.InferenceSession.create(readFileSync(resolve(folder, 'onnx/model.onnx')))
const {
  num_hidden_layers: layers,
  num_key_value_heads: heads,
  head_dim,
} = json(resolve(folder, 'config.json'))
const int64 = (values, dims) => new ort.Tensor('int64', BigInt64Array.from(values, BigInt), dims)

async function run(ids, past, keep) {
  const feeds = { input_ids: int64(ids, [1, ids.length]), num_logits_to_keep: int64([keep], []) }
  feeds.attention_mask = int64(new Array(past.length + ids.length).fill(1), [
    1,
    past.length + ids.length,
  ])
  for (let i = 0; i < layers; i++)
    for (const kv of ['key', 'value'])
      feeds[`past_key_values.${i}.${kv}`] =
        past[`present.${i}.${kv}`] ??
        new ort.Tensor('float32', new Float32Array(0), [1, heads, 0, head_dim])
  return { ...(await session.run(feeds)), length: past.length + ids.length }
}

const all = await run(model.ids, { length: 0 }, 0)
const flat = model.logits.flat()
let far = 0
for (let i = 0; i < flat.length; i++) far = Math.max(far, Math.abs(flat[i] - all.logits.data[i]))
expect(
  all.logits.dims.join() === [1, model.ids.length, flat.length / model.ids.length].join(),
  all.logits.dims,
)
expect(far < 1e-3, `logits by ${far}`)
const argmax = (data) => data.reduce((best, x, i) => (x > data[best] ? i : best), 0)
let state = await run(model.ids, { length: 0 }, 1)
expect(state.logits.dims[1] === 1, 'num_logits_to_keep')
const greedy = []
const begin = performance.now()
for (const _ of model.greedy) {
  greedy.push(argmax(state.logits.data))
  state = await run([greedy.at(-1)], state, 1)
}
expect(greedy.join() === model.greedy.join(), `greedy ${greedy} / ${model.greedy}`)
const rate = (1000 * greedy.length) / (performance.now() - begin)
console.log(
  `logits differ by at most ${far.toExponential(1)}, greedy tokens checked, ${rate.toFixed(0)} tokens/s on one wasm thread`,
)
console.log(JSON.stringify(tokenizer.decode(greedy, { skip_special_tokens: true })))
if (wrong) throw new Error(`${wrong} differences`)
