/** A field for an image: a file, a paste, a drop, or a frame of the camera. */
import type { InputParameter } from '../../src/index.ts'
import { button, element } from '../dom.ts'
import { receiveFiles } from '../files.ts'
import { wordsOf } from '../notice.ts'
import { createLabelled, idOf, type Field, type FieldValue } from './field.ts'

/** Length in pixels to which longer sides are scaled, because photos of phones have megapixels. */
const LONGEST = 1_024

/** Creates the field. Its value is the canvas that shows the image. */
export function createImageField(parameter: InputParameter): Field {
  const frame = createLabelled(parameter)
  const file = element('input', '')
  const problem = element('p', 'predictor-problem')
  const row = element('div', 'row')
  let changed: () => void = () => {}
  const picture = createPicture(parameter)
  problem.role = 'alert'
  Object.assign(file, { type: 'file', accept: 'image/*' })

  function draw(source: ImageBitmap | HTMLVideoElement, width: number, height: number): void {
    picture.draw(source, width, height)
    problem.textContent = ''
    changed()
  }

  async function take(given: File | undefined): Promise<void> {
    if (!given) return
    try {
      const bitmap = await createImageBitmap(given)
      draw(bitmap, bitmap.width, bitmap.height)
      bitmap.close()
    } catch {
      problem.textContent = `This browser cannot read ${given.name} as an image.`
    }
  }

  file.addEventListener('change', () => void take(file.files?.[0]))
  receiveFiles(frame.element, ([given]) => void take(given))
  const camera = createCamera(row, problem, (video) =>
    draw(video, video.videoWidth, video.videoHeight),
  )
  frame.add(file)
  const hint = element('p', 'quiet', 'Choose a file, or drop or paste an image here.')
  frame.element.append(hint, row, problem, picture.canvas)
  return {
    element: frame.element,
    read: picture.read,
    onChange: (callback) => (changed = callback),
    close: camera.stop,
  }
}

interface Picture {
  canvas: HTMLCanvasElement
  draw(source: ImageBitmap | HTMLVideoElement, width: number, height: number): void
  /** Returns the canvas as a value; `undefined` while nothing was drawn. */
  read(): FieldValue | undefined
}

function createPicture(parameter: InputParameter): Picture {
  const canvas = element('canvas', 'predictor-image')
  canvas.id = idOf(parameter, 'image')
  canvas.role = 'img'
  canvas.ariaLabel = `Image for ${parameter.name}`
  canvas.hidden = true
  const found = `document.querySelector('#${canvas.id}')`
  return {
    canvas,
    draw(source, width, height) {
      const scale = Math.min(1, LONGEST / Math.max(width, height))
      canvas.width = Math.max(1, Math.round(width * scale))
      canvas.height = Math.max(1, Math.round(height * scale))
      canvas.getContext('2d')?.drawImage(source, 0, 0, canvas.width, canvas.height)
      canvas.hidden = false
    },
    read() {
      const remote = `{ data: ${found}.toDataURL(), dtype: 'image' }`
      return canvas.hidden ? undefined : { value: canvas, code: found, remote }
    },
  }
}

/** Adds buttons that turn the camera on, take a frame, and turn it off. */
function createCamera(
  row: HTMLElement,
  problem: HTMLElement,
  take: (video: HTMLVideoElement) => void,
): { stop(): void } {
  const video = element('video', 'predictor-image')
  let stream: MediaStream | undefined
  Object.assign(video, { muted: true, playsInline: true })
  video.ariaLabel = 'Camera'

  function stop(): void {
    for (const track of stream?.getTracks() ?? []) track.stop()
    stream = undefined
    video.remove()
    row.replaceChildren(start)
  }

  async function open(): Promise<void> {
    try {
      stream = await navigator.mediaDevices.getUserMedia({ video: true })
      video.srcObject = stream
      await video.play()
      problem.textContent = ''
      const shot = button('Take this frame', 'plain strong', () => take(video))
      row.replaceChildren(shot, button('Turn the camera off', 'plain', stop), video)
      shot.focus()
    } catch (error) {
      stop()
      problem.textContent = `The camera cannot be used. ${wordsOf(error)}`
    }
  }

  const start = button('Use the camera', 'plain', () => void open())
  row.append(start)
  return { stop }
}
