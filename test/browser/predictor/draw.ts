/** Digits on canvases, as a person with a mouse would leave them. No drawing was seen in training. */
import fixtures from './digits.json'

export interface Drawing {
  digit: number
  canvas: OffscreenCanvas
}

export interface Look {
  /** Edges of the canvas in pixels. */
  side: number
  /** Where the digit's box begins, and its edges, in shares of the side. */
  box: [x: number, y: number, width: number, height: number]
  /** Width of the pen in shares of the side. */
  pen: number
  ink?: string
  paper?: string
}

/** Black on white, in the middle. */
export const plain: Look = { side: 280, box: [0.25, 0.2, 0.45, 0.6], pen: 0.045 }

function sheet({
  side,
  ink = 'black',
  paper = 'white',
}: Look): [OffscreenCanvas, OffscreenCanvasRenderingContext2D] {
  const canvas = new OffscreenCanvas(side, side)
  const context = canvas.getContext('2d')
  if (!context) throw new Error('No canvas.')
  context.fillStyle = paper
  context.fillRect(0, 0, side, side)
  context.strokeStyle = ink
  return [canvas, context]
}

/** Twenty digits, each in two ways of writing. */
export function strokes(look: Look): Drawing[] {
  const [left, top, width, height] = look.box
  return fixtures.strokes.map((written) => {
    const [canvas, context] = sheet(look)
    context.lineWidth = look.pen * look.side
    context.lineCap = context.lineJoin = 'round'
    for (const path of written.strokes) {
      context.beginPath()
      for (const [x = 0, y = 0] of path) {
        context.lineTo(
          Math.round((left + x * width) * look.side),
          Math.round((top + y * height) * look.side),
        )
      }
      context.stroke()
    }
    return { digit: written.digit, canvas }
  })
}

/** Forty images of 8 x 8 greys by people, enlarged. */
export function images(look: Look): Drawing[] {
  const [left, top, width, height] = look.box.map((share) => share * look.side) as Look['box']
  return fixtures.images.map(({ digit, rows }) => {
    const [canvas, context] = sheet(look)
    const small = new ImageData(8, 8)
    rows.flat().forEach((dark, pixel) => {
      small.data.fill(Math.round(255 * (1 - dark / 16)), pixel * 4, pixel * 4 + 3)
      small.data[pixel * 4 + 3] = 255
    })
    const source = new OffscreenCanvas(8, 8)
    source.getContext('2d')?.putImageData(small, 0, 0)
    context.imageSmoothingQuality = 'high'
    context.drawImage(source, left, top, width, height)
    return { digit, canvas }
  })
}

/** Draws a black bar on white, as in a one, on 64 x 64 pixels. */
export function drawnOne(): OffscreenCanvas {
  const canvas = new OffscreenCanvas(64, 64)
  const context = canvas.getContext('2d')
  if (!context) throw new Error('No canvas.')
  context.fillStyle = 'white'
  context.fillRect(0, 0, 64, 64)
  context.fillStyle = 'black'
  context.fillRect(30, 8, 5, 48)
  return canvas
}
