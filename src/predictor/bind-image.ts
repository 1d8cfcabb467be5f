/** Checks that the layout of an image fits the tensor that it is bound to. */
import type { Binding, ImageLayout } from '../catalog/schema.ts'
import type { ElementType } from '../values/elements.ts'
import { getLayoutSize } from './image-fit.ts'
import { toImageShape } from './image-tensor.ts'
import { countChannels } from './pixels.ts'
import { fitsShape, type Shape } from './tensor.ts'

/** Throws `unavailable` that names a parameter. */
type Fail = (why: string) => never

/** Returns the layout of a binding. `shape` is that of the tensor; `null` if it is unknown. */
export function parseImageLayout(
  { image: layout, tensor }: Binding,
  type: ElementType,
  shape: Shape | null,
  fail: Fail,
): ImageLayout {
  if (!layout) return fail('is an image, so its binding must have `image`.')
  assertNumbers(layout, type, fail)
  const { width = NaN, height = NaN, fit, padding, multipleOf, resample, channels } = layout
  if (padding && fit !== 'pad') fail("`padding` needs `fit: 'pad'`.")
  if (resample && channels === 'rgba') fail('`resample` is not possible with `rgba`.')
  if (multipleOf !== undefined && getLayoutSize(layout))
    fail('`multipleOf` is for sides that are not set, but both are.')
  // If a side is not set, the model must accept any length.
  const expected = toImageShape(layout, shape, [width, height])
  if (shape && !fitsShape(expected, shape)) {
    const shown = expected.map((length) => (Number.isNaN(length) ? 'any' : length)).join(', ')
    fail(`its layout has the shape [${shown}], which ${tensor} does not accept.`)
  }
  return layout
}

function assertNumbers(layout: ImageLayout, type: ElementType, fail: Fail): void {
  const depth = countChannels(layout)
  const lists = { mean: layout.mean, std: layout.std, 'padding.value': layout.padding?.value }
  for (const [key, given] of Object.entries(lists)) {
    if (given && given.length !== 1 && given.length !== depth)
      fail(`\`${key}\` must have ${depth === 1 ? '1 number' : `1 or ${depth} numbers`}.`)
  }
  if (type !== 'uint8') return
  for (const key of ['scale', 'mean', 'std'] as const)
    if (layout[key] !== undefined) fail(`the model takes raw bytes, so \`${key}\` is not allowed.`)
}
