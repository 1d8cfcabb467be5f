/**
 * The driver of the kit for machines with a GPU: built as the kit has it, in a folder of its own, on an
 * adapter made of software. The programs beside it are those of this machine.
 *
 * @module-tag slow
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildApp } from '../bench/gpu-kit/app.ts'
import type { Row } from '../bench/gpu-kit/measure.ts'
import { ensureChromium } from '../setup/chromium.ts'

const run = promisify(execFile)
let kit: string

beforeAll(async () => {
  kit = mkdtempSync(join(tmpdir(), 'inorigin-gpu-kit-'))
  await buildApp(join(kit, 'app'), ['inorigin'])
}, 60_000)

afterAll(() => rmSync(kit, { recursive: true, force: true }))

/** Runs the driver in the folder of the kit. Rejects with what it printed if it fails. */
const drive = (...args: string[]) =>
  run(process.execPath, ['app/driver.mjs', '--chromium', ensureChromium(), ...args], { cwd: kit })

test('measures a tiny model with drafts and without, in a table and as JSON', async () => {
  const { stdout } = await drive('--adapter', 'swiftshader', '--tiny', '--json', 'tiny.json')
  const results = JSON.parse(readFileSync(join(kit, 'tiny.json'), 'utf8')) as {
    flags: string[]
    adapter: object
    effort: object
    rows: Row[]
  }
  expect(results).toMatchObject({
    flags: expect.arrayContaining(['--use-webgpu-adapter=swiftshader']),
    adapter: { name: 'google swiftshader', software: true },
    effort: { contexts: [8, 32], answer: 6, rounds: 1, history: 40 },
  })
  expect(results.rows).toMatchObject([
    { side: 'inorigin', model: 'small', format: 'fp32' },
    { side: 'inorigin', model: 'small', format: 'fp32', drafts: false },
  ])
  for (const { loads, decode, turns, streams, errors } of results.rows) {
    expect(errors).toEqual([])
    expect(Object.keys(decode)).toEqual(['8', '32'])
    for (const { rate, rates, first, firsts, dispatches, texts } of Object.values(decode)) {
      expect(rate).toBeGreaterThan(0)
      expect(rates).toEqual([rate])
      expect(firsts).toEqual([first])
      // Each layer takes several.
      expect(dispatches).toBeGreaterThan(10)
      expect(texts.map((text) => [...text].length)).toEqual([6])
    }
    for (const milliseconds of [loads, turns].flat()) expect(milliseconds).toBeGreaterThan(1)
    expect(streams?.ratio).toBeGreaterThan(0)
    expect(streams?.rate).toBeGreaterThan(0)
  }
  // Drafts change no text.
  const [drafted, plain] = results.rows.map(({ decode }) =>
    Object.values(decode).map(({ texts }) => texts),
  )
  expect(drafted).toEqual(plain)

  const [columns = '', one = '', other = ''] = stdout.split('\n').slice(-5)
  expect(columns.split(/ {2,}/)).toEqual([
    'side',
    'model',
    'decode at 8',
    'decode at 32',
    'first token of 8',
    'first token of 32',
    'turn 1 of 40, turn 2 of 24 more',
    '4 at once over one by one',
    'dispatches per token',
    'load, second load',
  ])
  const [rate] = Object.values(results.rows[0]?.decode ?? {})
  expect(one).toMatch(/^inorigin +small fp32 /)
  expect(one).toContain(`${rate?.rate.toFixed(1)} tokens/s`)
  expect(other).toMatch(/^inorigin without drafts +small fp32 /)
}, 400_000)

test.each([
  [['--adapter', 'banana'], '--adapter banana: it can be f16, plain, swiftshader.'],
  [['--sides', 'wllama'], '--sides wllama: it can be inorigin.'],
  [['--rounds', '0'], '--rounds must be 1 or more.'],
])('refuses %j before it starts anything', async (args, message) => {
  const failed = await drive(...args).catch((error: unknown) => error)
  expect(failed).toMatchObject({ code: 1, stderr: `${message}\n`, stdout: '' })
})
