/** Finds upright rectangles around the bright areas of a mask. */

/** Rectangle in whole pixels. */
export interface Box {
  left: number
  top: number
  width: number
  height: number
}

/** Brightness from which a pixel of the mask is text. */
const MIN_PIXEL = 0.3 * 255
/** Mean brightness from which an area is text. */
const MIN_MEAN = 0.6 * 255
/** Minimum length of a side. */
const MIN_SIDE = 3
/** Growth of a box by this multiple of its area over its perimeter, since masks are too narrow. */
const GROWTH = 1.5

/** Returns the boxes from top to bottom. Lines that are tilted get a box around them. */
export function findBoxes(
  mask: ImageData,
  page: Readonly<{ width: number; height: number }>,
): Box[] {
  const seen = new Uint8Array(mask.width * mask.height)
  const boxes: Box[] = []
  for (let pixel = 0; pixel < seen.length; pixel += 1) {
    if (seen[pixel] || brightnessOf(mask, pixel) < MIN_PIXEL) continue
    const box = fillArea(mask, pixel, seen)
    const isText = Math.min(box.width, box.height) >= MIN_SIDE && meanOf(mask, box) >= MIN_MEAN
    if (isText) boxes.push(grow(box, page))
  }
  return boxes.toSorted((one, other) => one.top - other.top || one.left - other.left)
}

const brightnessOf = ({ data }: ImageData, pixel: number): number => data[pixel * 4] ?? 0

/** Marks the area that the pixel belongs to as seen, and returns the box around it. */
function fillArea(mask: ImageData, first: number, seen: Uint8Array): Box {
  let [left, top, right, bottom] = [mask.width, mask.height, 0, 0]
  const waiting = [first]
  seen[first] = 1
  for (let pixel = waiting.pop(); pixel !== undefined; pixel = waiting.pop()) {
    const [x, y] = [pixel % mask.width, Math.floor(pixel / mask.width)]
    left = Math.min(left, x)
    right = Math.max(right, x + 1)
    top = Math.min(top, y)
    bottom = Math.max(bottom, y + 1)
    for (let row = Math.max(0, y - 1); row <= Math.min(mask.height - 1, y + 1); row += 1) {
      for (
        let column = Math.max(0, x - 1);
        column <= Math.min(mask.width - 1, x + 1);
        column += 1
      ) {
        const next = row * mask.width + column
        if (seen[next] || brightnessOf(mask, next) < MIN_PIXEL) continue
        seen[next] = 1
        waiting.push(next)
      }
    }
  }
  return { left, top, width: right - left, height: bottom - top }
}

function meanOf(mask: ImageData, { left, top, width, height }: Box): number {
  let sum = 0
  for (let y = top; y < top + height; y += 1)
    for (let x = left; x < left + width; x += 1) sum += brightnessOf(mask, y * mask.width + x)
  return sum / (width * height)
}

/** Returns the larger box, but only its part on the page. */
function grow(
  { left, top, width, height }: Box,
  page: Readonly<{ width: number; height: number }>,
): Box {
  const distance = Math.round((GROWTH * width * height) / (2 * (width + height)))
  const [x, y] = [Math.max(0, left - distance), Math.max(0, top - distance)]
  return {
    left: x,
    top: y,
    width: Math.min(page.width, left + width + distance) - x,
    height: Math.min(page.height, top + height + distance) - y,
  }
}
