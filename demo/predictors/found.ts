/** Draws objects and parts that a predictor found on their picture: boxes and masks. */
import { element } from '../dom.ts'

interface Box {
  xmin: number
  ymin: number
  xmax: number
  ymax: number
}

/** An object or a part, as the steps `objects`, `segments` and `panoptic` return it. */
interface Found {
  label: string
  score?: number
  /** In pixels of the picture. */
  box?: Box
  /** Image of the picture's size, in which the part is white. */
  mask?: ImageData
}

/** Opacity of a part's color over the picture, from 0 to 255. */
const MASK_ALPHA = 140

export function isFound(value: unknown): value is Found[] {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.every(
      (item: unknown) =>
        typeof item === 'object' &&
        item !== null &&
        typeof Reflect.get(item, 'label') === 'string' &&
        ('box' in item || Reflect.get(item, 'mask') instanceof ImageData),
    )
  )
}

/** Returns the picture with everything found on it, and a list with the color of each. */
export function showFound(found: readonly Found[], picture: ImageData, name: string): HTMLElement {
  const canvas = element('canvas', 'predictor-image')
  const context = canvas.getContext('2d')
  Object.assign(canvas, { width: picture.width, height: picture.height })
  canvas.role = 'img'
  canvas.ariaLabel = `${name}: ${found.map(({ label }) => label).join(', ')}`
  if (context) {
    context.putImageData(withMasks(picture, found), 0, 0)
    for (const [index, one] of found.entries())
      if (one.box) drawBox(context, one.label, one.box, colorOf(index))
  }
  const list = element('ol', 'predictor-found')
  list.ariaLabel = name
  for (const [index, { label, score }] of found.entries()) {
    const item = element('li', '')
    const swatch = element('i', '')
    swatch.style.background = `rgb(${colorOf(index).join(' ')})`
    item.append(swatch, label)
    if (score !== undefined) item.append(element('span', '', `${Math.round(100 * score)} %`))
    list.append(item)
  }
  const whole = element('div', '')
  whole.append(canvas, list)
  return whole
}

type Color = readonly [red: number, green: number, blue: number]

/** Returns a color that differs from those of the numbers before it, dark enough for white letters. */
function colorOf(index: number): Color {
  // The golden angle divides the circle of hues best.
  const hue = (index * 137.5 + 210) % 360
  const part = (shift: number): number => {
    const at = (shift + hue / 60) % 6
    return Math.round(190 - 160 * Math.max(0, Math.min(at, 4 - at, 1)))
  }
  return [part(5), part(3), part(1)]
}

/** Returns a copy of the picture in which each part has its color. */
function withMasks(picture: ImageData, found: readonly Found[]): ImageData {
  const { width, height } = picture
  const data = new Uint8ClampedArray(picture.data)
  for (const [index, { mask }] of found.entries()) {
    if (mask?.width !== width || mask.height !== height) continue
    const color = colorOf(index)
    for (let at = 0; at < data.length; at += 4) {
      const alpha = ((mask.data[at] ?? 0) / 255) * (MASK_ALPHA / 255)
      for (const [channel, value] of color.entries())
        data[at + channel] = (1 - alpha) * (data[at + channel] ?? 0) + alpha * value
    }
  }
  return new ImageData(data, width, height)
}

function drawBox(
  context: CanvasRenderingContext2D,
  label: string,
  { xmin, ymin, xmax, ymax }: Box,
  color: Color,
): void {
  const { width, height } = context.canvas
  const line = Math.max(2, Math.round(Math.max(width, height) / 300))
  const size = 6 * line
  context.strokeStyle = context.fillStyle = `rgb(${color.join(' ')})`
  context.lineWidth = line
  context.strokeRect(xmin, ymin, xmax - xmin, ymax - ymin)
  context.font = `${size}px system-ui, sans-serif`
  const { width: length } = context.measureText(label)
  const top = Math.max(0, ymin - size - line)
  context.fillRect(xmin - line / 2, top, length + 2 * line, size + line)
  context.fillStyle = 'white'
  context.textBaseline = 'top'
  context.fillText(label, xmin + line / 2, top + line / 2)
}
