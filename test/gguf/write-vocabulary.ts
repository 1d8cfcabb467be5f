/**
 * `node .ci/build/run.mjs test/gguf/write-vocabulary.ts TOKENIZER PRE FILE`: writes a GGUF file that has
 * only the vocabulary of a tokenizer.json with byte-level BPE, to compare how words are split. PRE
 * becomes `tokenizer.ggml.pre`.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { KIND } from '../support/gguf-tokenizers.ts'
import { type Written, writeGguf } from '../support/gguf.ts'

interface TokenizerJson {
  added_tokens: { id: number; content: string; special: boolean }[]
  model: { vocab: Record<string, number>; merges: (string | [string, string])[] }
}

/** Sizes of a model, which llama.cpp wants to know. */
const MODEL: Record<string, Written> = {
  'general.architecture': { text: 'llama' },
  'llama.context_length': { uint32: 2_048 },
  'llama.embedding_length': { uint32: 64 },
  'llama.block_count': { uint32: 1 },
  'llama.feed_forward_length': { uint32: 64 },
  'llama.attention.head_count': { uint32: 4 },
  'llama.attention.layer_norm_rms_epsilon': { float32: 1e-5 },
}

function toMetadata({ added_tokens: added, model }: TokenizerJson, pre: string) {
  const tokens: { text: string; kind: number }[] = []
  for (const [text, id] of Object.entries(model.vocab)) tokens[id] = { text, kind: KIND.normal }
  for (const { id, content, special } of added)
    tokens[id] = { text: content, kind: special ? KIND.control : KIND.userDefined }
  // Ids without a token get one that no text has.
  const all = Array.from(tokens, (token, id) => token ?? { text: `[PAD${id}]`, kind: KIND.unused })
  // Without these ids, llama.cpp takes any token for the one that ends an answer.
  const special = { uint32: all.findIndex(({ kind }) => kind === KIND.control) }
  return {
    ...MODEL,
    'tokenizer.ggml.bos_token_id': special,
    'tokenizer.ggml.eos_token_id': special,
    'tokenizer.ggml.model': { text: 'gpt2' },
    'tokenizer.ggml.pre': { text: pre },
    'tokenizer.ggml.tokens': { texts: all.map(({ text }) => text) },
    'tokenizer.ggml.token_type': { int32s: all.map(({ kind }) => kind) },
    'tokenizer.ggml.merges': {
      texts: model.merges.map((merge) => (typeof merge === 'string' ? merge : merge.join(' '))),
    },
  }
}

const [source, pre, path] = process.argv.slice(2)
if (source === undefined || pre === undefined || path === undefined)
  throw new Error('Pass a tokenizer.json, the way in which it splits texts, and the file to write.')
const json = JSON.parse(readFileSync(source, 'utf8')) as TokenizerJson
writeFileSync(path, writeGguf({ metadata: toMetadata(json, pre), tensors: [] }))
console.log(`Wrote ${path}.`)
