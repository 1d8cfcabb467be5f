/** The embedded model with an end token that it never writes, so that every decode has full length. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Catalog, Resource } from '../../src/index.ts'

/** A token of the vocabulary that no training text holds. */
const UNUSED = '<|reserved_0|>'

type Json = Record<string, unknown>

/** Pages to serve under `base`: a catalog with one model of that tag, and its changed files. */
export function endlessModel(folder: string, base: string, tag: string): Record<string, string> {
  const read = (name: string) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as Json
  const tokenizer = read('tokenizer.json') as { added_tokens: { id: number; content: string }[] }
  const eos_token_id = tokenizer.added_tokens.find((token) => token.content === UNUSED)?.id
  if (eos_token_id === undefined) throw new Error(`The tokenizer has no ${UNUSED}.`)
  const changed: Record<string, Json> = {
    'config.json': { ...read('config.json'), eos_token_id },
    'generation_config.json': { ...read('generation_config.json'), eos_token_id },
    'tokenizer_config.json': { ...read('tokenizer_config.json'), eos_token: UNUSED },
  }
  const pages = Object.fromEntries(
    Object.entries(changed).map(([name, json]) => [`${base}${name}`, JSON.stringify(json)]),
  )
  const resource = (type: Resource['type'], name: string): Resource => {
    const page = pages[`${base}${name}`]
    const bytes = page === undefined ? readFileSync(join(folder, name)) : Buffer.from(page)
    const url = page === undefined ? `/inorigin/models/guide/${name}` : name
    return {
      type,
      url,
      name,
      bytes: bytes.length,
      sha256: createHash('sha256').update(bytes).digest('hex'),
    }
  }
  const catalog: Catalog = {
    version: 1,
    entries: [
      {
        type: 'model',
        tag,
        name: 'Endless',
        created: '2026-01-01T00:00:00Z',
        maxInputTokens: 2048,
        maxOutputTokens: 1024,
        implementations: [
          {
            id: 'wasm',
            engine: 'onnx',
            device: 'wasm',
            resources: [
              resource('config', 'config.json'),
              resource('config', 'generation_config.json'),
              resource('tokenizer', 'tokenizer.json'),
              resource('tokenizer', 'tokenizer_config.json'),
              resource('onnx', 'onnx/model.onnx'),
            ],
          },
        ],
      },
    ],
  }
  return { ...pages, [`${base}catalog.json`]: JSON.stringify(catalog) }
}
