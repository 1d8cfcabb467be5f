import type { LoadProgress, Server } from '../src/index.ts'
import { byId } from './dom.ts'
import { preparing, runTime } from './format.ts'
import { createLatest } from './latest.ts'
import { wordsOf } from './notice.ts'
import { drawScene } from './scene.ts'

const TAG = '@inorigin/edges'
/** Length in pixels to which longer sides of pictures are scaled. The predictor takes any size. */
const LONGEST = 640

/** Creates the part for an image predictor: a picture, two parameters, and the result. */
export function createEdges(starting: Promise<Server>): void {
  const picture = drawable('edges-in')
  const result = drawable('edges-out')
  const mode = byId('edges-mode', HTMLSelectElement)
  const strength = byId('edges-strength', HTMLInputElement)
  const figure = byId('edges-figure', HTMLElement)
  const file = byId('edges-file', HTMLInputElement)
  const said = byId('edges-said', HTMLElement)
  const latest = createLatest()

  async function predict(): Promise<void> {
    const signal = latest.begin()
    const onProgress = (progress: LoadProgress): void => {
      if (!signal.aborted) said.textContent = preparing(progress)
    }
    figure.textContent = strength.value
    try {
      const server = await starting
      const inputs = { image: picture.canvas, mode: mode.value, strength: strength.valueAsNumber }
      if (signal.aborted) return
      const found = await server.predict(TAG, inputs, { signal, onProgress })
      const { edges } = found.outputs
      if (signal.aborted || !(edges instanceof ImageData)) return
      Object.assign(result.canvas, { width: edges.width, height: edges.height })
      result.putImageData(edges, 0, 0)
      said.textContent = `${edges.width} × ${edges.height} · ${runTime(found)}`
    } catch (error) {
      if (!signal.aborted) said.textContent = wordsOf(error)
    }
  }

  async function choose(chosen: File): Promise<void> {
    try {
      const bitmap = await createImageBitmap(chosen)
      const scale = Math.min(1, LONGEST / Math.max(bitmap.width, bitmap.height))
      const size = [bitmap.width, bitmap.height].map((side) =>
        Math.max(1, Math.round(side * scale)),
      )
      const [width = 1, height = 1] = size
      Object.assign(picture.canvas, { width, height })
      picture.drawImage(bitmap, 0, 0, width, height)
      bitmap.close()
    } catch {
      said.textContent = `This browser cannot read ${chosen.name} as an image.`
      return
    }
    await predict()
  }

  drawScene(picture)
  mode.addEventListener('change', () => void predict())
  strength.addEventListener('input', () => void predict())
  byId('edges-find', HTMLButtonElement).addEventListener('click', () => void predict())
  file.addEventListener('change', () => {
    const [chosen] = file.files ?? []
    if (chosen) void choose(chosen)
  })
}

function drawable(id: string): CanvasRenderingContext2D {
  const context = byId(id, HTMLCanvasElement).getContext('2d')
  if (!context) throw new Error('This browser provides no 2D canvas.')
  return context
}
