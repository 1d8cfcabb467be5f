/** Folders as MLC leaves them, but for a library and weights that compute: none can be had here. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const GUIDE = join(import.meta.dirname, '../../demo/models/guide')

/** A WebAssembly module, and nothing in it. */
export const LIBRARY = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0)

/** Bytes of the files of weights. */
const SHARDS = [30_000, 20_000]

/** Files by name; `chat` is added to what MLC's own file says. */
export function mlcFiles(chat: object = {}): Record<string, Uint8Array> {
  const shards = SHARDS.map(
    (bytes, index) => [`params_shard_${index}.bin`, new Uint8Array(bytes).fill(index + 1)] as const,
  )
  const records = shards.map(([dataPath, { length: nbytes }]) => ({
    dataPath,
    format: 'raw-shard',
    nbytes,
    records: [],
  }))
  const config = {
    tokenizer_files: ['tokenizer.json', 'tokenizer_config.json'],
    context_window_size: 131_072,
    quantization: 'q4f32_1',
    vocab_size: 2048,
    eos_token_id: 0,
    model_config: {},
    ...chat,
  }
  return {
    'mlc-chat-config.json': Buffer.from(JSON.stringify(config)),
    'tokenizer.json': readFileSync(join(GUIDE, 'tokenizer.json')),
    'tokenizer_config.json': readFileSync(join(GUIDE, 'tokenizer_config.json')),
    'tensor-cache.json': Buffer.from(JSON.stringify({ metadata: {}, records })),
    ...Object.fromEntries(shards),
  }
}
