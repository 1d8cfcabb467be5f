/** Spectrograms, compared with those that transformers 4.57 computes. */
import { expect, test } from 'vitest'
import { computeLogMel, cutFrames } from '../../../src/predictor/writer/log-mel.ts'

/** Half a second of a tone and a rising one, and then silence. */
const SOUND = Float32Array.from({ length: 16_000 }, (_, at) =>
  at < 8_000 ? Math.sin(at * 0.05) * 0.3 + Math.sin(at * at * 1e-5) * 0.2 : 0,
)

const LAYOUT = { bands: 8, window: 400, hop: 160, frames: 100 }

/** Frames of `WhisperFeatureExtractor(feature_size=8, chunk_length=1)`. */
const FRAMES: Readonly<Record<number, readonly number[]>> = {
  0: [1.02129, 0.48908, 0.26293, 0.10316, -0.04253, -0.18241, -0.31045, -0.4129],
  1: [1.0467, -0.00142, -0.24374, -0.40605, -0.55213, -0.69227, -0.82046, -0.84622],
  10: [1.03971, -0.57725, -0.84622, -0.84622, -0.84622, -0.84622, -0.84622, -0.84622],
  49: [1.11828, 0.88434, 0.12782, 0.03959, -0.03669, -0.10801, -0.1721, -0.22234],
  50: [1.04489, 0.88234, 0.63623, 0.54566, 0.46866, 0.39709, 0.33287, 0.28257],
  99: [-0.84622, -0.84622, -0.84622, -0.84622, -0.84622, -0.84622, -0.84622, -0.84622],
}

const frameOf = ({ data, frames }: ReturnType<typeof computeLogMel>, at: number): number[] =>
  [...data].filter((_, index) => index % frames === at)

test('A spectrogram is that of Whisper', () => {
  const mel = computeLogMel(SOUND, 16_000, LAYOUT)
  expect([mel.bands, mel.frames, mel.data.length]).toEqual([8, 100, 800])
  for (const [at, expected] of Object.entries(FRAMES))
    expect(frameOf(mel, Number(at))).toEqual(expected.map((level) => expect.closeTo(level, 4)))
})

test('A part of it has zeros after its end', () => {
  const part = cutFrames(computeLogMel(SOUND, 16_000, LAYOUT), 99, 3)
  expect(part.frames).toBe(3)
  expect(frameOf(part, 0)).toEqual((FRAMES[99] ?? []).map((level) => expect.closeTo(level, 4)))
  expect(frameOf(part, 2)).toEqual(Array(8).fill(0))
})
