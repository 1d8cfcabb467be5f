/** Reads the text of an image with three models: where is text, which way is up, what does it say. */
import type { Server } from '../../src/index.ts'
import { type Box, findBoxes } from './find-boxes.ts'

/** A line of text, from the top of the image to its bottom. */
export interface TextLine extends Box {
  text: string
  score: number
  /** `true` if the line was upside down. */
  isTurned: boolean
}

/** Maximum length in pixels of a side that is searched for text. */
const MAX_SIDE = 960

/** Score from which a line is turned. */
const MIN_TURN_SCORE = 0.9

/** Resolves with the lines. Rejects with the reason of the signal, and with errors of the models. */
export async function readText(
  server: Server,
  image: ImageBitmap,
  signal?: AbortSignal,
): Promise<TextLine[]> {
  const page = draw(image, Math.min(1, MAX_SIDE / Math.max(image.width, image.height)))
  const found = await server.predict('@paddleocr/detection', { x: page }, { signal })
  const boxes = findBoxes(found.outputs['map'] as ImageData, page)
  if (boxes.length === 0) return []
  const crops = boxes.map((box) => cut(page, box))

  // All lines are one batch, of which the models return one result for each line.
  const sides = await server.predict('@paddleocr/direction', { x: crops }, { signal })
  const turned = toRows(sides.outputs['direction'], crops.length).map(
    ([best]) => best?.index === 1 && best.score > MIN_TURN_SCORE,
  )
  const upright = crops.map((crop, line) => (turned[line] ? turn(crop) : crop))
  const { outputs } = await server.predict('@paddleocr/recognition', { x: upright }, { signal })
  const texts = outputs['text'] as { text: string; score: number }[]
  return boxes.map((box, line) => ({
    ...box,
    text: texts[line]?.text ?? '',
    score: texts[line]?.score ?? 0,
    isTurned: turned[line] ?? false,
  }))
}

type Classes = { index: number; score: number }[]

/** Returns the classes of each line. A batch of one line has no dimension for lines. */
const toRows = (classes: unknown, count: number): Classes[] =>
  (count === 1 ? [classes] : classes) as Classes[]

function draw(image: ImageBitmap, scale: number): OffscreenCanvas {
  const [width, height] = [image.width, image.height].map((side) => Math.round(side * scale))
  const canvas = new OffscreenCanvas(width ?? 1, height ?? 1)
  context(canvas).drawImage(image, 0, 0, canvas.width, canvas.height)
  return canvas
}

function cut(page: OffscreenCanvas, { left, top, width, height }: Box): OffscreenCanvas {
  const canvas = new OffscreenCanvas(width, height)
  context(canvas).drawImage(page, -left, -top)
  return canvas
}

function turn(line: OffscreenCanvas): OffscreenCanvas {
  const canvas = new OffscreenCanvas(line.width, line.height)
  const drawing = context(canvas)
  drawing.translate(line.width, line.height)
  drawing.rotate(Math.PI)
  drawing.drawImage(line, 0, 0)
  return canvas
}

function context(canvas: OffscreenCanvas): OffscreenCanvasRenderingContext2D {
  const found = canvas.getContext('2d')
  if (!found) throw new Error('This browser cannot draw the image.')
  return found
}
