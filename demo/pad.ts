/** A point of the drawing, in 0 to 1 from the left and from the top. */
export type Point = readonly [x: number, y: number]

export interface Pad {
  readonly canvas: HTMLCanvasElement
  readonly empty: boolean
  clear(): void
  /** Replaces the drawing. */
  draw(strokes: readonly (readonly Point[])[]): void
}

/** Width of the pen, as a part of the drawing's width. */
const PEN = 0.07

/** Makes a canvas something to draw on with pen, finger or mouse; calls back after every stroke. */
export function createPad(canvas: HTMLCanvasElement, onStroke: () => void): Pad {
  const context = canvas.getContext('2d')
  if (!context) throw new Error('This browser gives no canvas to draw on.')
  let strokes: Point[][] = []
  let pen: number | undefined

  /** The paper is opaque and in the colours of the theme: dark ink on light, or light ink on dark. */
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

/** A curve through the middles between the points; a point given twice is a corner. */
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
