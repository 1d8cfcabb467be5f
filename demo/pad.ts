/** Point of the drawing, from 0 to 1 from the left and from the top. */
export type Point = readonly [x: number, y: number]

export interface Pad {
  readonly canvas: HTMLCanvasElement
  readonly empty: boolean
  clear(): void
  /** Replaces the drawing. */
  draw(strokes: readonly (readonly Point[])[]): void
}

/** Width of the pen, as a fraction of the width of the drawing. */
const PEN = 0.07

/** Makes a canvas drawable with pen, finger or mouse. Calls `onStroke` after every stroke. */
export function createPad(canvas: HTMLCanvasElement, onStroke: () => void): Pad {
  const context = canvas.getContext('2d')
  if (!context) throw new Error('This browser provides no 2D canvas.')
  let strokes: Point[][] = []
  let pen: number | undefined

  /** Paints opaque paper in the colors of the theme: dark ink on light, or light ink on dark. */
  function paint(): void {
    if (!context) return
    const { width, height } = canvas
    const { backgroundColor, color } = getComputedStyle(canvas)
    context.fillStyle = backgroundColor
    context.fillRect(0, 0, width, height)
    context.strokeStyle = color
    context.lineWidth = PEN * width
    context.lineCap = 'round'
    context.lineJoin = 'round'
    for (const stroke of strokes) context.stroke(smooth(stroke, width, height))
  }

  function at(event: PointerEvent): Point {
    const { left, top, width, height } = canvas.getBoundingClientRect()
    return [(event.clientX - left) / width, (event.clientY - top) / height]
  }

  canvas.addEventListener('pointerdown', (event) => {
    if (pen !== undefined || event.button !== 0) return
    pen = event.pointerId
    canvas.setPointerCapture(pen)
    strokes.push([at(event)])
    paint()
  })
  canvas.addEventListener('pointermove', (event) => {
    if (event.pointerId !== pen) return
    strokes.at(-1)?.push(...event.getCoalescedEvents().map(at), at(event))
    paint()
  })
  const lift = (event: PointerEvent): void => {
    if (event.pointerId !== pen) return
    pen = undefined
    onStroke()
  }
  canvas.addEventListener('pointerup', lift)
  canvas.addEventListener('pointercancel', lift)

  const repaint = new MutationObserver(paint)
  repaint.observe(document.documentElement, { attributeFilter: ['data-theme'] })
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', paint)
  paint()

  return {
    canvas,
    get empty() {
      return strokes.length === 0
    },
    clear() {
      strokes = []
      paint()
    },
    draw(next) {
      strokes = next.map((stroke) => [...stroke])
      paint()
      onStroke()
    },
  }
}

/** Returns a curve through the middles between the points. A point that comes twice is a corner. */
function smooth(stroke: readonly Point[], width: number, height: number): Path2D {
  const path = new Path2D()
  const points = stroke.map(([x, y]) => [x * width, y * height] as const)
  const [first, last] = [points[0], points.at(-1)]
  if (!first || !last) return path
  path.moveTo(...first)
  points.slice(1).forEach((point, index) => {
    const before = points[index] ?? point
    path.quadraticCurveTo(...before, (before[0] + point[0]) / 2, (before[1] + point[1]) / 2)
  })
  path.lineTo(...last)
  return path
}
