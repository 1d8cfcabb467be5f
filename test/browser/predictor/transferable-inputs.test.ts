/** What a page shows, on its way to a worker. */
import { expect, test } from 'vitest'
import {
  withTransferableInputs,
  closeImages,
  toTransferable,
} from '../../../src/predictor/transferable-inputs.ts'

function painted(): HTMLCanvasElement {
  const canvas = document.createElement('canvas')
  canvas.width = 8
  canvas.height = 4
  const context = canvas.getContext('2d')
  if (!context) throw new Error('No canvas.')
  context.fillStyle = 'rgb(255, 0, 0)'
  context.fillRect(0, 0, 8, 4)
  return canvas
}

function firstPixel(bitmap: ImageBitmap): number[] {
  const context = new OffscreenCanvas(8, 4).getContext('2d')
  if (!context) throw new Error('No canvas.')
  context.drawImage(bitmap, 0, 0)
  return [...context.getImageData(0, 0, 1, 1).data]
}

/** To another thread and back, as inputs travel. */
async function posted<T>(value: T): Promise<T> {
  const { port1, port2 } = new MessageChannel()
  const received = new Promise<T>((resolve) => {
    port2.onmessage = (event: MessageEvent<T>) => resolve(event.data)
  })
  port1.postMessage(value)
  return received.finally(() => port1.close())
}

test.each(['a canvas', 'an offscreen canvas', 'an image'])(
  '%s becomes a bitmap that can be posted',
  async (kind) => {
    const canvas = painted()
    const offscreen = new OffscreenCanvas(8, 4)
    offscreen.getContext('2d')?.drawImage(canvas, 0, 0)
    const element = new Image()
    element.src = canvas.toDataURL()
    const picture = { 'a canvas': canvas, 'an offscreen canvas': offscreen, 'an image': element }[
      kind
    ]
    const plain = await toTransferable({ picture, number: 5 })
    const received = await posted(plain)
    expect(received['number']).toBe(5)
    const bitmap = received['picture'] as ImageBitmap
    expect([bitmap.width, bitmap.height]).toEqual([8, 4])
    expect(firstPixel(bitmap)).toEqual([255, 0, 0, 255])
    closeImages(received)
    expect(bitmap.width).toBe(0)
  },
)

test('a video becomes the frame it shows', async () => {
  const canvas = painted()
  const video = document.createElement('video')
  video.muted = true
  video.srcObject = canvas.captureStream(30)
  const empty = toTransferable({ picture: document.createElement('video') })
  await expect(empty).rejects.toMatchObject({
    message: 'inputs.picture: the video shows no frame yet.',
  })
  const repaint = setInterval(() => canvas.getContext('2d')?.fillRect(0, 0, 8, 4), 20)
  await video.play()
  const { picture } = await toTransferable({ picture: video })
  clearInterval(repaint)
  expect([(picture as ImageBitmap).width, (picture as ImageBitmap).height]).toEqual([8, 4])
})

test('everything else stays what it is', async () => {
  const values = { text: 'a', data: new Float32Array([1]), file: new Blob(['b']), none: null }
  expect(await toTransferable(values)).toEqual(values)
})

test('an image that is not there is refused by name', async () => {
  const picture = new Image()
  picture.src = 'data:image/png;base64,AAAA'
  await expect(toTransferable({ picture })).rejects.toMatchObject({
    kind: 'invalid_request',
    param: 'inputs.picture',
    message:
      'inputs.picture: it shows no readable image. Check that it is loaded and larger than 0 x 0.',
  })
})

test('pixels of another origin are refused by name', async () => {
  // The same server under another name.
  const other = new URL('/test/browser/predictor/dot.svg', location.href)
  other.hostname = 'other.localhost'
  const picture = new Image()
  picture.src = other.href
  for (const given of [picture, [painted(), picture]]) {
    await expect(withTransferableInputs({ picture: given }, posted)).rejects.toMatchObject({
      kind: 'invalid_request',
      message:
        'inputs.picture: it shows pixels of another origin; ' +
        'load the image with crossorigin="anonymous".',
    })
  }
})

test('of several images, only those are closed that were made on the way', async () => {
  const bitmap = await createImageBitmap(painted())
  const frame = new VideoFrame(painted(), { timestamp: 0 })
  const made: ImageBitmap[] = []
  await withTransferableInputs(
    { pictures: [painted(), bitmap, frame], other: bitmap },
    async (plain) => {
      const [first, second, third] = plain['pictures'] as [ImageBitmap, unknown, unknown]
      made.push(first)
      expect([first.width, second, third]).toEqual([8, bitmap, frame])
    },
  )
  expect([made[0]?.width, bitmap.width, frame.codedWidth]).toEqual([0, 8, 8])
  bitmap.close()
  await expect(withTransferableInputs({ pictures: [bitmap] }, posted)).rejects.toMatchObject({
    message: 'inputs.pictures: the image has no pixels: it was closed or transferred.',
  })
  frame.close()
})
