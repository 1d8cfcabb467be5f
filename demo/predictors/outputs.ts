/** Outputs of a prediction, each shown as what it is: image, marked picture, bars, table, sound, text or JSON. */
import type { OutputParameter, PredictionResult, Signature } from '../../src/index.ts'
import { createBar } from '../bars.ts'
import { button, element } from '../dom.ts'
import { saveFile } from '../files.ts'
import { bytes } from '../format.ts'
import { isFound, showFound } from './found.ts'
import { createPlayer, isSound } from './player.ts'
import { createTable } from './table.ts'

/** Limit of bars. More numbers are a table. */
const MAX_BARS = 32

/** A value of several elements. Public types describe it as `OutputValue`. */
interface Tensor {
  data: ArrayLike<unknown>
  shape: readonly number[]
}

interface Score {
  label: unknown
  score: number
}

/**
 * Returns elements that show the outputs, in the order of the signature. `picture` is the image among the
 * inputs, on which what was found is drawn.
 */
export function showOutputs(
  { outputs }: Pick<PredictionResult, 'outputs'>,
  signature: Signature,
  picture?: ImageData,
): HTMLElement[] {
  return signature.outputs
    .filter(({ name }) => name in outputs)
    .map((parameter) => {
      const figure = element('figure', 'predictor-output')
      const caption = element('figcaption', '', parameter.name)
      if (parameter.description) caption.title = parameter.description
      const value = outputs[parameter.name]
      const shown =
        picture && isFound(value)
          ? showFound(value, picture, parameter.name)
          : show(value, parameter, signature)
      figure.append(caption, shown)
      return figure
    })
}

function show(value: unknown, parameter: OutputParameter, signature: Signature): HTMLElement {
  if (value instanceof ImageData) return toCanvas(value, parameter.name)
  if (value instanceof Uint8Array) return toDownload(value, parameter.name)
  if (Array.isArray(value) && value.some((item) => isFile(item))) {
    const row = element('div', 'row')
    row.append(...value.map((item: unknown) => show(item, parameter, signature)))
    return row
  }
  if (isScores(value)) return toBars(value, parameter.name)
  if (isTensor(value)) return showTensor(value, parameter, signature)
  if (typeof value === 'object') return toJson(value)
  return element('p', 'predictor-value', String(value))
}

/** Several images, or the bytes of several windows of sound, are a list. */
function isFile(value: unknown): boolean {
  return value instanceof ImageData || value instanceof Uint8Array
}

function isTensor(value: unknown): value is Tensor {
  return typeof value === 'object' && value !== null && 'data' in value && 'shape' in value
}

function isScores(value: unknown): value is Score[] {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.length <= MAX_BARS &&
    value.every(
      (item: unknown) =>
        typeof item === 'object' &&
        item !== null &&
        'label' in item &&
        typeof Reflect.get(item, 'score') === 'number',
    )
  )
}

function showTensor(tensor: Tensor, parameter: OutputParameter, signature: Signature): HTMLElement {
  const { data, shape } = tensor
  const values = Array.from(data)
  const isRow = shape.filter((length) => length !== 1).length <= 1
  const isPart = (value: unknown) => typeof value === 'number' && value >= 0 && value <= 1
  if (isRow && values.length > 1 && values.length <= MAX_BARS && values.every(isPart)) {
    const labels = findLabels(values.length, signature)
    return toBars(
      values.map((value, index) => ({ label: labels[index] ?? index, score: value as number })),
      parameter.name,
    )
  }
  const box = element('div', 'predictor-table')
  // It scrolls, so it can take the focus.
  box.tabIndex = 0
  box.role = 'region'
  box.ariaLabel = `Values of ${parameter.name}`
  box.append(createTable(parameter.name, values, shape))
  if (data instanceof Float32Array && isSound(data)) box.prepend(createPlayer(data))
  return box
}

/** Returns the names of the enumeration that has as many members as there are scores. */
function findLabels(count: number, { outputs }: Signature): string[] {
  const found = outputs.find(({ enumeration }) => enumeration?.length === count)
  return found?.enumeration?.map(({ name }) => name) ?? []
}

function toBars(scores: readonly Score[], name: string): HTMLElement {
  const list = element('ol', 'scores alike')
  list.ariaLabel = name
  const best = Math.max(...scores.map(({ score }) => score))
  for (const { label, score } of scores) {
    const bar = createBar(String(label), `Score of ${String(label)}`)
    bar.show(score)
    bar.item.classList.toggle('best', score === best)
    list.append(bar.item)
  }
  return list
}

function toCanvas(image: ImageData, name: string): HTMLCanvasElement {
  const canvas = element('canvas', 'predictor-image')
  canvas.role = 'img'
  canvas.ariaLabel = `${name}, ${image.width} × ${image.height}`
  Object.assign(canvas, { width: image.width, height: image.height })
  canvas.getContext('2d')?.putImageData(image, 0, 0)
  return canvas
}

function toDownload(content: Uint8Array, name: string): HTMLElement {
  const row = element('div', 'row')
  const save = button('Save', 'plain', () =>
    saveFile(`${name}.bin`, new Blob([new Uint8Array(content)])),
  )
  row.append(element('p', 'predictor-value', bytes(content.length)), save)
  return row
}

function toJson(value: unknown): HTMLElement {
  const plain = (_key: string, item: unknown): unknown =>
    typeof item === 'bigint' ? Number(item) : item
  const shown = element('pre', 'predictor-code', JSON.stringify(value, plain, 2))
  shown.tabIndex = 0
  return shown
}
