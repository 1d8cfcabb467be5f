import { afterEach, describe, expect, test, vi } from 'vitest'
import type { Sequence } from '../../../src/engine/decoder.ts'
import { logitsOf } from './run-decoder.ts'
import { fakeEngine, failure, greedy, numbers, textOf } from './run-fakes.ts'
import type { Engine, EngineOptions } from './run-fakes.ts'

let engine: Engine | undefined
afterEach(() => engine?.close())

function open(options: EngineOptions = {}): Engine {
  engine = fakeEngine(options)
  return engine
}

const prompts = [numbers(5), numbers(21, 3), numbers(40, 11), numbers(2, 9), numbers(17, 30)]

describe('a device that is lost', () => {
  const lost = (call: number) => (_: number, what: string) =>
    --call === 0 && what !== '' ? failure('device_lost') : null

  test.each([1, 2, 3, 5, 8, 13])('at call %i changes no token', async (call) => {
    const { run, reopened } = open({ fail: lost(call), reopenOptions: {} })
    const texts = await Promise.all(
      prompts.map(async (prompt, seed) => (await run(prompt, { seed }).all()).text),
    )
    expect(reopened).toHaveLength(1)
    const { run: calm } = open()
    for (const [seed, prompt] of prompts.entries())
      expect((await calm(prompt, { seed }).all()).text).toBe(texts[seed])
  })

  test('while a row of scores is read changes no token', async () => {
    // Hot enough for the best 64 of so many not to settle it.
    const wide = (tokens: readonly number[]): Float32Array =>
      Float32Array.from({ length: 4000 }, (_, id) => logitsOf(tokens)[id % 64] as number)
    const answers: string[] = []
    let rows = 0
    for (const broken of [true, false]) {
      const { run, reopened } = open({ logitsFunction: wide, reopenOptions: {} })
      const { decoder } = engine as Engine
      const { step } = decoder
      decoder.step = async (entries) => {
        const logits = await step(entries)
        return {
          ...logits,
          row: async (index) => {
            rows += 1
            if (broken && rows === 3) throw failure('device_lost')
            return logits.row(index)
          },
        }
      }
      answers.push((await run([1, 2], { seed: 5, maxTokens: 20 }).all()).text)
      expect(reopened).toHaveLength(broken ? 1 : 0)
      await engine?.close()
    }
    expect(rows).toBeGreaterThan(10)
    expect(answers[0]).toBe(answers[1])
  })

  test('again and again is given up', async () => {
    const { run, reopened } = open({
      fail: () => failure('device_lost'),
      reopenOptions: { fail: () => failure('device_lost') },
    })
    await expect(run(numbers(5)).all()).rejects.toMatchObject({ code: 'device_lost' })
    expect(reopened).toHaveLength(2)
  })

  test('and cannot be had again is an error, after which the next answer tries', async () => {
    const options: EngineOptions = { fail: lost(2) }
    const { run } = open(options)
    await expect(run(numbers(5)).all()).rejects.toMatchObject({ code: 'no_webgpu' })
    await expect(run(numbers(5)).all()).rejects.toMatchObject({ code: 'no_webgpu' })
  })

  test('takes its cache with it', async () => {
    const { run, reopened } = open({ fail: lost(12), reopenOptions: {} })
    await run(numbers(20)).all()
    const second = run(numbers(30))
    expect((await second.all()).text).toBe(textOf(greedy(numbers(30), 10)))
    expect(reopened).toHaveLength(1)
  })
})

describe('a decoder that fails', () => {
  test('fails all that run on it, and is opened again for the next', async () => {
    let call = 0
    const fail = (): Error | null => ((call += 1) === 4 ? failure('gpu_error') : null)
    const { run, reopened } = open({ fail, reopenOptions: {} })
    const results = await Promise.allSettled(prompts.slice(0, 2).map((prompt) => run(prompt).all()))
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect((await run(numbers(5)).all()).text).toBe(textOf(greedy(numbers(5), 10)))
    expect(reopened).toHaveLength(1)
  })

  test('for want of memory gives up what nobody uses', async () => {
    let full = false
    const fail = (): Error | null => {
      const thrown = full ? failure('out_of_memory') : null
      full = false
      return thrown
    }
    const { decoder, run } = open({ fail })
    await run(numbers(30)).all()
    const [kept] = decoder.alive
    full = true
    const { text } = await run(numbers(30, 5), { maxTokens: 4 }).all()
    expect(text).toBe(textOf(greedy(numbers(30, 5), 4)))
    expect(decoder.alive.has(kept as Sequence)).toBe(false)
    // With nothing left to give up it is an error.
    await vi.waitFor(() => expect(decoder.alive.size).toBe(1), 20_000)
    const first = run(numbers(30, 5), { maxTokens: 50 })
    await first.pieces.next()
    full = true
    await expect(first.all()).rejects.toMatchObject({ code: 'out_of_memory' })
  })
})

test('closing ends what runs, and frees everything', async () => {
  const { decoder, run, close } = open()
  await run(numbers(9)).all()
  const before = decoder.calls.length
  const running = run(numbers(5), { maxTokens: 900 }).all()
  const refused = running.catch((thrown: unknown) => thrown)
  await vi.waitFor(() => expect(decoder.calls.length).toBeGreaterThan(before), {
    interval: 1,
    timeout: 20_000,
  })
  await close()
  expect(await refused).toMatchObject({ kind: 'unavailable' })
  expect(decoder.alive.size).toBe(0)
  await expect(run([1]).all()).rejects.toMatchObject({ kind: 'unavailable' })
})
