/** A picture of the result, to share. It has the figures of the table and nothing else. */
import { rate } from '../format.ts'
import { toRows } from './report.ts'
import type { BenchResult } from './result.ts'

const WIDTH = 1200
const MARGIN = 56
const LINE = 38
/** Height of the part above the rows. */
const HEAD = 210

const COLOURS = { ground: '#fdfdfc', ink: '#191b1e', soft: '#5b6066', signal: '#c8401b' }

/** Draws the picture. Resolves with a PNG. */
export async function drawPicture(result: BenchResult): Promise<Blob> {
  const rows = toRows(result)
  const canvas = document.createElement('canvas')
  canvas.width = WIDTH
  canvas.height = HEAD + rows.length * LINE + MARGIN
  const context = canvas.getContext('2d')
  if (!context) throw new Error('This browser cannot draw the picture.')
  drawHead(context, result)
  rows.forEach(([name, value], index) => {
    const y = HEAD + index * LINE
    write(context, name, [MARGIN, y], { size: 22, colour: COLOURS.soft, width: 330 })
    write(context, value, [MARGIN + 350, y], { size: 22, width: WIDTH - 2 * MARGIN - 350 })
  })
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) =>
      blob ? resolve(blob) : reject(new Error('This browser cannot save the picture.')),
    )
  })
}

function drawHead(context: CanvasRenderingContext2D, result: BenchResult): void {
  context.fillStyle = COLOURS.ground
  context.fillRect(0, 0, context.canvas.width, context.canvas.height)
  context.fillStyle = COLOURS.signal
  context.fillRect(0, 0, WIDTH, 10)
  const { tokensPerSecond } = result.decode.short
  const speed = tokensPerSecond === null ? 'not measured' : `${rate(tokensPerSecond)} tokens/s`
  write(context, speed, [MARGIN, 105], { size: 60, weight: 600, width: WIDTH - 2 * MARGIN })
  const { browser, browserVersion, platform } = result.environment
  const about = `${result.settings.tag} in ${browser} ${browserVersion} on ${platform}`
  write(context, about, [MARGIN, 152], { size: 26, width: WIDTH - 2 * MARGIN })
}

interface TextStyle {
  size: number
  /** Most pixels that the text may take; a longer one is written narrower. */
  width: number
  colour?: string
  weight?: number
}

function write(
  context: CanvasRenderingContext2D,
  text: string,
  [x, y]: readonly [number, number],
  { size, width, colour = COLOURS.ink, weight = 400 }: TextStyle,
): void {
  context.font = `${weight} ${size}px system-ui, sans-serif`
  context.fillStyle = colour
  context.fillText(text, x, y, width)
}
