/** A picture of the camera, in a dialog that shows what the camera sees. */
import { button, element } from './dom.ts'
import { showModal } from './modal.ts'
import { wordsOf } from './notice.ts'

/** Length in pixels to which longer sides are scaled, because cameras have megapixels. */
const LONGEST = 1_024

/** Asks for a picture. Resolves with nothing if the user takes none. */
export async function takePicture(): Promise<File | undefined> {
  const dialog = element('dialog', 'camera')
  const title = element('h2', '', 'Camera')
  const said = element('p', 'quiet', 'The browser asks for the camera …')
  const video = element('video', '')
  const row = element('div', 'row')
  let picture: Promise<File | undefined> = Promise.resolve(undefined)
  title.id = 'camera-title'
  said.role = 'status'
  video.ariaLabel = 'What the camera sees'
  Object.assign(video, { muted: true, playsInline: true })
  dialog.setAttribute('aria-labelledby', title.id)

  const take = button('Take the picture', 'plain strong', () => {
    picture = toFile(video)
    dialog.close()
  })
  take.disabled = true
  row.append(
    button('Cancel', 'plain', () => dialog.close()),
    take,
  )
  dialog.append(title, said, video, row)
  const closed = new Promise((resolve) => dialog.addEventListener('close', resolve, { once: true }))
  showModal(dialog)
  const stream = await open(video).catch((error: unknown) => {
    said.textContent = `The camera cannot be used. ${wordsOf(error)}`
    return undefined
  })
  if (stream) {
    said.textContent = 'The picture stays in this page.'
    take.disabled = false
    take.focus()
  }
  await closed
  const taken = await picture
  for (const track of stream?.getTracks() ?? []) track.stop()
  return taken
}

async function open(video: HTMLVideoElement): Promise<MediaStream> {
  const stream = await navigator.mediaDevices.getUserMedia({ video: true })
  video.srcObject = stream
  await video.play()
  return stream
}

/** Resolves with the frame that the video shows now. */
async function toFile(video: HTMLVideoElement): Promise<File | undefined> {
  const { videoWidth: width, videoHeight: height } = video
  const scale = Math.min(1, LONGEST / Math.max(width, height, 1))
  const canvas = element('canvas', '')
  canvas.width = Math.round(width * scale)
  canvas.height = Math.round(height * scale)
  canvas.getContext('2d')?.drawImage(video, 0, 0, canvas.width, canvas.height)
  const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, 'image/jpeg'))
  return blob ? new File([blob], 'camera.jpg', { type: 'image/jpeg' }) : undefined
}
