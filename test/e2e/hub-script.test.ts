/**
 * `npm run test:hub`, as it is run from a terminal, with a hub of our own.
 *
 * @module-tag slow
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openHub, repositoryOf } from '../support/hub.ts'
import type { ModelReport } from '../hub/table.ts'

const ROOT = join(import.meta.dirname, '../..')
const GUIDE = join(ROOT, 'demo/models/guide')
/** A tag of the default catalog, and its repository. Here the repository has our own small model. */
const TAG = '@huggingfacetb/smollm2-135m'
const REPOSITORY = 'HuggingFaceTB/SmolLM2-135M-Instruct'

interface Outcome {
  code: number | null
  stdout: string
  stderr: string
}

function run(...args: readonly string[]): Promise<Outcome> {
  const { VITEST: _, ...env } = process.env
  const script = ['.ci/build/run.mjs', 'test/hub/run.ts', '--built', '--device', 'wasm']
  const child = spawn(process.execPath, [...script, ...args], { cwd: ROOT, env })
  const outcome: Outcome = { code: null, stdout: '', stderr: '' }
  child.stdout.on('data', (data: Buffer) => (outcome.stdout += data.toString()))
  child.stderr.on('data', (data: Buffer) => (outcome.stderr += data.toString()))
  return new Promise((resolve) => child.on('close', (code) => resolve({ ...outcome, code })))
}

/** Returns the cells of the table's last row by the names of their columns. */
function lastRow(stdout: string): Record<string, string> {
  const lines = stdout.split('\n').filter((line) => line.startsWith('| '))
  const cells = (line = ''): string[] =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim())
  const row = cells(lines.at(-1))
  return Object.fromEntries(cells(lines[0]).map((name, index) => [name, row[index] ?? '']))
}

test('downloads, measures, checks and deletes a model, and prints a row of a table or its error', async () => {
  const hub = await openHub({ [REPOSITORY]: repositoryOf(GUIDE, 'a'.repeat(40)) })
  const folder = mkdtempSync(join(tmpdir(), 'inorigin-hub-test-'))
  try {
    const file = join(folder, 'hub.json')
    const { code, stdout, stderr } = await run('--hub', hub.url, '--only', TAG, '--json', file)
    expect(stderr).toBe('')
    expect(stdout).toContain(`${TAG}: fp32-wasm, 6.5 MB`)
    expect(stdout).toContain('6.5 MB will be downloaded and deleted again, one model at a time.')
    expect(lastRow(stdout)).toEqual({
      model: TAG,
      implementation: 'fp32-wasm',
      size: '6.5 MB',
      load: expect.stringMatching(/^[\d.]+ m?s$/),
      'first token': expect.stringMatching(/^[\d.]+ m?s$/),
      prefill: expect.stringMatching(/^[\d.]+ tokens\/s$/),
      decode: expect.stringMatching(/^[\d.]+ tokens\/s$/),
      memory: expect.stringMatching(process.platform === 'linux' ? /^[\d.]+ [MG]B$/ : /^-$/),
      sentence: 'ok',
      tool: 'ok',
      schema: 'ok',
    })
    expect(code).toBe(0)
    const [report] = JSON.parse(readFileSync(file, 'utf8')) as ModelReport[]
    expect(report?.measurements?.firstToken.promptTokens).toBeGreaterThan(400)
    expect(report?.error).toBeUndefined()
    expect(hub.asked.filter((path) => path.endsWith('/onnx/model.onnx'))).toHaveLength(1)

    hub.damaged = 'onnx/model.onnx'
    const failed = await run('--hub', hub.url, '--only', TAG)
    expect(lastRow(failed.stdout)).toMatchObject({
      model: TAG,
      implementation: expect.stringMatching(/^failed: .*onnx\/model\.onnx/),
    })
    expect(failed.code).toBe(1)
  } finally {
    await hub.close()
    rmSync(folder, { recursive: true })
  }
})

test('without a network it says what is missing', async () => {
  const { code, stdout, stderr } = await run('--hub', 'http://127.0.0.1:9/')
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).toMatch(
    /^http:\/\/127\.0\.0\.1:9\/api\/models\/.* cannot be read: .*needs a network/,
  )
  const silent = createServer(() => {})
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  try {
    const { port } = silent.address() as AddressInfo
    const waited = await run('--hub', `http://127.0.0.1:${port}/`)
    expect(waited.code).toBe(1)
    expect(waited.stderr).toMatch(/cannot be read: .*timeout/)
  } finally {
    silent.close()
    silent.closeAllConnections()
  }
})

test('it names the tags to choose from', async () => {
  const { code, stderr } = await run('--only', '@me/nothing')
  expect(code).toBe(1)
  expect(stderr).toMatch(
    /Unknown tag "@me\/nothing"\. Expected one of: @huggingfacetb\/smollm2-135m/,
  )
  expect(stderr).toContain('Usage: npm run test:hub -- ')
})
