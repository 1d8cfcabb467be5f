import { expect, test } from 'vitest'
import { computeFbank } from '../../../src/predictor/fbank.ts'

/** A rising tone with a sawtooth: three frames at 16 kHz. */
const SAMPLES = Float32Array.from(
  { length: 800 },
  (_, at) => Math.sin((at * at) / 5000) * 0.5 + (at % 7) / 70,
)

// What ASTFeatureExtractor(num_mel_bins=4, max_length=4, mean=-4, std=2) returns.
const EXPECTED = [
  [1.7314, 1.19913, 1.64263, 1.74037],
  [2.10526, 1.22281, 1.64263, 1.74037],
  [2.30239, 1.78477, 1.64263, 1.74037],
  // No frame is left, so the energies are 0.
  [1, 1, 1, 1],
]

test.each([
  ['and filled up', 4, EXPECTED],
  ['and cut', 2, EXPECTED.slice(0, 2)],
])('Energies are those of Kaldi, %s', (_, frames, expected) => {
  const energies = computeFbank(SAMPLES, 16_000, { bins: 4, frames, mean: -4, std: 4 })
  expect([...energies]).toEqual(expected.flat().map((each) => expect.closeTo(each, 4)))
})

test('Sound that is shorter than a frame has no energies', () => {
  const energies = computeFbank(SAMPLES.slice(0, 399), 16_000, { bins: 2, frames: 1 })
  expect([...energies]).toEqual([-0, -0])
})
