/** Sessions of a predictor with a state and sound, from a page, and its state over HTTP. */
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { PredictorEntry, Server } from '../../src/index.ts'
import { fetchIn } from '../support/requests.ts'
import { onnxFile } from '../support/onnx.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

/** Adds the sum of each window to the state. */
const file = onnxFile({
  inputs: [
    { name: 'wave', type: 'float32', shape: [1, 'n'] },
    { name: 'h', type: 'float32', shape: [1, 1] },
  ],
  outputs: [
    { name: 'hn', type: 'float32', shape: [1, 1] },
    { name: 'sum', type: 'float32', shape: [1, 1] },
  ],
  nodes: [
    { type: 'ReduceSum', inputs: ['wave'], outputs: ['s'], attributes: { keepdims: 1 } },
    { type: 'Add', inputs: ['s', 'h'], outputs: ['hn'] },
    { type: 'Identity', inputs: ['hn'], outputs: ['sum'] },
  ],
})

const ENTRY: PredictorEntry = {
  type: 'predictor',
  tag: '@test/sum',
  name: 'Sum',
  created: '2026-01-01T00:00:00Z',
  signature: {
    inputs: [
      { name: 'wave', type: 'float32' },
      { name: 'h', type: 'float32' },
    ],
    outputs: [
      { name: 'sum', type: 'float32' },
      { name: 'hn', type: 'float32' },
    ],
  },
  states: [{ input: 'h', output: 'hn' }],
  implementations: (['webgpu', 'wasm'] as const).map((device) => ({
    id: device,
    engine: 'onnx',
    device,
    resources: [
      {
        type: 'onnx',
        url: '/sum/sum.onnx',
        name: 'sum.onnx',
        bytes: file.length,
        sha256: createHash('sha256').update(file).digest('hex'),
      },
    ],
    bindings: { wave: { tensor: 'wave', audio: { rate: 8000, window: 2 } } },
  })),
}

const folder = mkdtempSync(join(tmpdir(), 'session-'))
let site: Site
let page: Page

beforeAll(async () => {
  writeFileSync(join(folder, 'sum.onnx'), file)
  const pages = { '/catalog.json': JSON.stringify({ version: 1, entries: [ENTRY] }) }
  site = await openSite({ folders: { '/sum/': folder }, pages })
  page = await site.open()
  await serveIn(page, { catalog: '/catalog.json', device: 'wasm' })
})

afterAll(async () => {
  await site?.close()
  rmSync(folder, { recursive: true })
})

declare const server: Server

test('a session carries sound and state, starts over, and is apart from others', async () => {
  const sums = await page.evaluate(async () => {
    const [session, other] = await Promise.all([
      server.session('@test/sum'),
      server.session('@test/sum'),
    ])
    const ones = new Float32Array(3).fill(1)
    const results: Record<string, unknown>[] = []
    // The first runs on the host's port, later ones on the predictor's own.
    for (let call = 0; call < 3; call++)
      results.push((await session.predict({ wave: ones })).outputs)
    results.push((await other.predict({ wave: ones })).outputs)
    session.reset()
    results.push((await session.predict({ wave: ones })).outputs)
    session.close()
    const closed = await session.predict({ wave: ones }).catch((error: Error) => error.message)
    const toList = ({ sum, ...rest }: Record<string, unknown>) => [
      ...(sum as { data: Float32Array }).data,
      ...Object.keys(rest),
    ]
    return { lists: results.map(toList), closed }
  })
  expect(sums).toEqual({
    lists: [[2], [4, 6], [8], [2], [2]],
    closed: 'The session was closed. Open another one.',
  })
})

const ON_WEBGPU = { tags: ['slow'], timeout: 300_000 }

test('a session on WebGPU answers the same, or WebGPU is left by name', ON_WEBGPU, async () => {
  const gpu = await site.open('/blank.html', await site.browser.newContext())
  await serveIn(gpu, { catalog: '/catalog.json', device: 'webgpu' })
  const seen = await gpu.evaluate(async () => {
    const wave = new Float32Array(3).fill(1)
    const { chosen, reasons } = await server.explain('@test/sum')
    if (chosen === null) return reasons.map(({ why }) => why)
    const session = await server.session('@test/sum')
    const results = [await session.predict({ wave }), await session.predict({ wave })]
    session.close()
    return results.map(({ outputs, device }) => [
      ...(outputs['sum'] as { data: Float32Array }).data,
      device,
    ])
  })
  if (typeof seen[0] === 'string') expect(seen[0]).toMatch(/GPU.*(timed out|wrong numbers)/)
  else
    expect(seen).toEqual([
      [2, 'webgpu'],
      [4, 6, 'webgpu'],
    ])
  await gpu.context().close()
})

test('an unknown tag has no session', async () => {
  const kind = await page.evaluate(() =>
    server.session('@test/none').then(
      () => 'opened',
      (error: { kind: string }) => error.kind,
    ),
  )
  expect(kind).toBe('not_found')
})

test('over HTTP the state is a tensor, and sound may be a WAV file', async () => {
  interface Body {
    results: { data: string; dtype: string; shape: number[] }[] | null
    error: string | null
  }
  const predict = async (inputs: Record<string, unknown>): Promise<Body> => {
    const { text } = await fetchIn(page, '/v1/predictions/remote', { tag: '@test/sum', inputs })
    return JSON.parse(text) as Body
  }
  const decode = (value: { data: string } | undefined): unknown =>
    JSON.parse(Buffer.from(value?.data.split(',')[1] ?? '', 'base64').toString())
  const first = await predict({ wave: [1, 1] })
  expect(first.results?.map(decode)).toEqual([[[[2]]], [[2]]])
  const second = await predict({ wave: [1, 1], h: decode(first.results?.[1]) })
  expect(second.results?.map(decode)).toEqual([[[[4]]], [[4]]])
  const wav = await predict({ wave: { data: toWav([0.5, 0.25]), dtype: 'binary' }, h: [[1]] })
  expect(wav.error).toBeNull()
})

/** A WAV file of 16-bit samples at 8 kHz, as a data URL. */
function toWav(samples: readonly number[]): string {
  const bytes = Buffer.alloc(44 + samples.length * 2)
  bytes.write('RIFF', 0)
  bytes.write('WAVEfmt ', 8)
  bytes.writeUInt32LE(16, 16)
  bytes.writeUInt16LE(1, 20)
  bytes.writeUInt16LE(1, 22)
  bytes.writeUInt32LE(8000, 24)
  bytes.writeUInt16LE(16, 34)
  bytes.write('data', 36)
  bytes.writeUInt32LE(samples.length * 2, 40)
  for (const [at, sample] of samples.entries()) bytes.writeInt16LE(sample * 2 ** 15, 44 + at * 2)
  return `data:audio/wav;base64,${bytes.toString('base64')}`
}
