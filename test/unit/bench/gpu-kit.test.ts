/** The kit for machines with a GPU: its plan, its table, its pieces and the models that it writes. */
import { spawnSync } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { environmentOf, flagsOf } from '../../bench/gpu-kit/browser.ts'
import type { Row } from '../../bench/gpu-kit/measure.ts'
import { type AdapterName, listEntries } from '../../bench/gpu-kit/plan.ts'
import { packFolder } from '../../bench/gpu-kit/pieces.ts'
import { writeReadme } from '../../bench/gpu-kit/readme.ts'
import { toTable } from '../../bench/gpu-kit/table.ts'
import { createTokenizer } from '../../bench/models/tokenizer.ts'
import { writeRandomWeights } from '../../mlc/random-weights.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'inorigin-unit-kit-'))
})
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(folder, { recursive: true, force: true })
})

test('a plan has formats that the adapter can compute, and ours without drafts', () => {
  const sides = ['inorigin', 'transformers', 'webllm', 'wllama'] as const
  const formatsOf = (adapter: AdapterName) =>
    listEntries(adapter, ['500M'], sides).map(({ side, format, drafts, device }) =>
      [side, format, drafts ?? 'default', device ?? 'webgpu'].join(' '),
    )
  expect(formatsOf('f16')).toEqual([
    'inorigin q4f16 default webgpu',
    'inorigin q4f16 false webgpu',
    'transformers q4f16 default webgpu',
    'webllm q4f16_1 default webgpu',
    'wllama q4_0 default webgpu',
  ])
  expect(formatsOf('plain')).toEqual([
    'inorigin q4 default webgpu',
    'inorigin q4 false webgpu',
    'transformers q4 default webgpu',
    'webllm q4f32_1 default webgpu',
    'wllama q4_0 default webgpu',
  ])
  expect(formatsOf('swiftshader').at(-1)).toBe('wllama q4_0 default wasm')
  const models = listEntries('f16', ['500M', '1500M'], ['wllama']).map(({ model }) => model)
  expect(models).toEqual(['500M', '1500M'])
})

test('a table shows what was measured, and a dash for what was not', () => {
  const effort = { contexts: [64, 2_048], answer: 64, rounds: 3, history: 1_000, threads: 4 }
  const decode = (rate: number, first: number, dispatches: number) => ({
    rate,
    rates: [rate],
    first,
    firsts: [first],
    dispatches,
    texts: [],
  })
  const rows: Row[] = [
    {
      side: 'inorigin',
      model: '500M',
      format: 'q4f16',
      drafts: false,
      loads: [8_123, 4_549],
      decode: { 64: decode(70.25, 33.4, 197), 2_048: decode(63.04, 341.6, 198.4) },
      turns: [150.2, 34.8],
      streams: { ratio: 0.958, rate: 128.06 },
      errors: [],
    },
    {
      side: 'wllama',
      model: '500M',
      format: 'q4_0',
      decode: { 64: decode(42, 103, 0) },
      errors: ['decode at 2048: It took more than 240 s.'],
    },
  ]
  const [columns, ...lines] = toTable(rows, effort)
  expect(lines).toEqual([
    [
      'inorigin without drafts',
      '500M q4f16',
      '70.3 tokens/s',
      '63.0 tokens/s',
      '33 ms',
      '342 ms',
      '150 ms, 35 ms',
      '0.96 (128.1 tokens/s)',
      '197, 198',
      '8.1 s, 4.5 s',
    ],
    ['wllama', '500M q4_0', '42.0 tokens/s', '-', '103 ms', '-', '-', '-', '-', '-'],
  ])
  expect(columns).toHaveLength(10)
})

test('the driver of a GPU is named to Vulkan, and none to an adapter of software', () => {
  vi.stubEnv('VK_DRIVER_FILES', '/opt/nvidia_icd.json')
  vi.stubEnv('LD_LIBRARY_PATH', '/opt/kit/lib')
  const named = {
    VK_DRIVER_FILES: '/opt/nvidia_icd.json',
    VK_ICD_FILENAMES: '/opt/nvidia_icd.json',
  }
  for (const adapter of ['f16', 'plain'] as const)
    expect(environmentOf(adapter)).toMatchObject({ ...named, LD_LIBRARY_PATH: '/opt/kit/lib' })
  expect(environmentOf('swiftshader')).not.toHaveProperty('VK_ICD_FILENAMES')
  // Only one adapter has the flag for half precision.
  const halves = (['f16', 'plain', 'swiftshader'] as const).filter((adapter) =>
    flagsOf(adapter).some((flag) => flag.includes('f16')),
  )
  expect(halves).toEqual(['f16'])
})

describe('the pieces of a kit', () => {
  const UNPACK = 'test/bench/gpu-kit/unpack.sh'

  /** Makes three pieces or more of a folder, whose content gzip cannot shrink. */
  async function pack(): Promise<string[]> {
    const [kit, out] = [join(folder, 'kit'), join(folder, 'out')]
    mkdirSync(join(kit, 'app'), { recursive: true })
    writeFileSync(join(kit, 'app/noise'), crypto.getRandomValues(new Uint8Array(50_000)))
    cpSync('test/bench/gpu-kit/run.sh', join(kit, 'run.sh'))
    const count = await packFolder(kit, out, 20_000)
    return Array.from({ length: count }, (_, index) => join(out, `part-${index + 1}`))
  }
  const unpack = (...args: string[]) => spawnSync('sh', [UNPACK, ...args], { encoding: 'utf8' })

  test('are no larger than asked for, and become the same folder again, in any order', async () => {
    const parts = await pack()
    expect(parts.length).toBeGreaterThan(2)
    const sizes = parts.map((part) =>
      readdirSync(part).map((file) => statSync(join(part, file)).size),
    )
    expect(Math.max(...sizes.flat())).toBe(20_000)
    const target = join(folder, 'target')
    expect(unpack(target, ...parts.toReversed())).toMatchObject({ status: 0, stderr: '' })
    expect(readFileSync(join(target, 'app/noise'))).toEqual(
      readFileSync(join(folder, 'kit/app/noise')),
    )
    // It can be run.
    expect(statSync(join(target, 'run.sh')).mode & 0o111).toBe(0o111)
  })

  test('are found beside the script, in one folder or in several', async () => {
    const parts = await pack()
    for (const part of parts) cpSync(UNPACK, join(part, 'unpack.sh'))
    const beside = (name: string): number | null =>
      spawnSync('sh', [join(parts[1] ?? '', 'unpack.sh'), join(folder, name)]).status
    expect(beside('several')).toBe(0)
    for (const part of parts)
      for (const file of readdirSync(part)) renameSync(join(part, file), join(parts[1] ?? '', file))
    expect(beside('one')).toBe(0)
    const content = (name: string) => readFileSync(join(folder, name, 'app/noise'))
    expect(content('one')).toEqual(content('several'))
  })

  test('are refused if one is missing', async () => {
    const [first = '', , ...others] = await pack()
    const { status, stderr } = unpack(join(folder, 'target'), first, ...others)
    expect(status).toBe(1)
    expect(stderr).toMatch(/^There are \d pieces of \d: kit\.tar\.gz\.1-of-\d /)
    expect(readdirSync(folder)).not.toContain('target')
  })
})

test('the README of a kit has its own facts, and names WebLLM only if the kit has it', () => {
  const plain = writeReadme({ glibc: '2.36', shapes: [] })
  expect(plain).toContain('glibc 2.36 or later')
  expect(plain).toContain('--enable-dawn-features=vulkan_enable_f16_on_nvidia')
  expect(plain).not.toContain('WebLLM')
  expect(writeReadme({ glibc: '2.36', shapes: ['500M'] })).toContain(
    'WebLLM has libraries for: 500M',
  )
})

test('weights for a compiled library have its shapes and types, and a character for each token', () => {
  const VOCABULARY = 96
  const params = [
    { name: 'model.embed_tokens.q_weight', shape: [VOCABULARY, 8], dtype: 'uint32' },
    { name: 'model.embed_tokens.q_scale', shape: [VOCABULARY, 2], dtype: 'float16' },
    { name: 'model.norm.weight', shape: [64], dtype: 'float16' },
    { name: 'model.bias', shape: [4], dtype: 'float32' },
  ]
  const metadata = JSON.stringify({ model_type: 'qwen2', quantization: 'q4f16_1', params })
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(metadata.length))
  const library = join(folder, 'library.wasm')
  writeFileSync(library, Buffer.concat([Buffer.from('\0asm'), length, Buffer.from(metadata)]))
  writeRandomWeights(folder, library, (size) => ({
    tokenizer: createTokenizer(size),
    chat: { eos_token_id: size - 1 },
  }))
  const read = (name: string) => JSON.parse(readFileSync(join(folder, name), 'utf8'))
  const { records } = read('tensor-cache.json')
  expect(read('ndarray-cache.json')).toEqual(read('tensor-cache.json'))
  const [shard] = records
  expect(shard.records.map(({ nbytes }: { nbytes: number }) => nbytes)).toEqual([
    VOCABULARY * 8 * 4,
    VOCABULARY * 2 * 2,
    64 * 2,
    4 * 4,
  ])
  const bytes = readFileSync(join(folder, shard.dataPath))
  expect(bytes).toHaveLength(shard.nbytes)
  // Norms are 1, which is 0x3c00 in half precision.
  expect(bytes.readUInt16LE(shard.records[2].byteOffset)).toBe(0x3c00)
  expect(bytes.readFloatLE(shard.records[3].byteOffset)).toBe(0)
  expect(Object.keys(read('tokenizer.json').model.vocab)).toHaveLength(VOCABULARY)
  expect(read('mlc-chat-config.json')).toMatchObject({
    model_type: 'qwen2',
    quantization: 'q4f16_1',
    vocab_size: VOCABULARY,
    eos_token_id: VOCABULARY - 1,
  })
})
