/** The check after a load: which captured runs it lets pass. */
import { expect, test } from 'vitest'
import { computesCaptured } from '../../../src/engine/onnx/decoder/capture-check.ts'
import { type ErrorCode } from '../../../src/error.ts'
import { failure, fakeDecoder, logitsOf } from './fake-decoder.ts'

/** Runs the check on a decoder that computes captured runs by `captured`; plain ones are right. */
async function check(captured: (tokens: readonly number[]) => Float32Array) {
  let captures = false
  const decoder = fakeDecoder({
    logitsFunction: (tokens) => (captures ? captured(tokens) : logitsOf(tokens)),
  })
  const passes = await computesCaptured(decoder, (value) => (captures = value))
  expect(decoder.alive.size).toBe(0)
  return passes
}

test('the same logits pass', async () => {
  expect(await check(logitsOf)).toBe(true)
})

test('a repeated run that leaves the recorded logits where they are does not pass', async () => {
  let recorded: Float32Array | undefined
  expect(await check((tokens) => (recorded ??= logitsOf(tokens)))).toBe(false)
})

test.each([0.5, Number.NaN])('a logit that is off by %d does not pass', async (error) => {
  const isOff = (tokens: readonly number[]): Float32Array =>
    logitsOf(tokens).map((logit, id) => (id === 9 ? logit + error : logit))
  expect(await check(isOff)).toBe(false)
})

const failing = (code: ErrorCode) => () => {
  throw failure(code)
}

test('a run that fails does not pass, and a lost device is an error', async () => {
  expect(await check(failing('model_unusable'))).toBe(false)
  await expect(check(failing('device_lost'))).rejects.toMatchObject({ code: 'device_lost' })
})
