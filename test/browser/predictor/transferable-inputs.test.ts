/** Images and sound of a page, on their way to a worker. */
import { describe, expect, test } from 'vitest'
import {
  closeImages,
  toPageSound,
  toTransferable,
  withTransferableInputs,
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

/** Posts a value as inputs are posted to another thread. */
async function posted<T>(value: T): Promise<T> {
  const { port1, port2 } = new MessageChannel()
  const received = new Promise<T>((resolve) => {
    port2.onmessage = (event: MessageEvent<T>) => resolve(event.data)
  })
  port1.postMessage(value)
  return received.finally(() => port1.close())
}

test.each(['a canvas', 'an offscreen canvas', 'an image'] as const)(
  '%s becomes a bitmap that can be posted',
  async (kind) => {
    const canvas = painted()
    const offscreen = new OffscreenCanvas(8, 4)
    offscreen.getContext('2d')?.drawImage(canvas, 0, 0)
    const element = new Image()
    element.src = canvas.toDataURL()
    const pictures = { 'a canvas': canvas, 'an offscreen canvas': offscreen, 'an image': element }
    const picture = pictures[kind]
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

test('other values stay as they are', async () => {
  const values = { text: 'a', data: new Float32Array([1]), file: new Blob(['b']), none: null }
  expect(await toTransferable(values)).toEqual(values)
})

test('a broken image is rejected by name', async () => {
  const picture = new Image()
  picture.src = 'data:image/png;base64,AAAA'
  await expect(toTransferable({ picture })).rejects.toMatchObject({
    kind: 'invalid_request',
    param: 'inputs.picture',
    message:
      'inputs.picture: it shows no readable image. Check that it is loaded and larger than 0 x 0.',
  })
})

test('pixels of another origin are rejected by name', async () => {
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

test('only bitmaps that were created on the way are closed', async () => {
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

describe('sound of a page', () => {
  test('has the samples of a WAV file, at the rate of the file', async () => {
    const view = new DataView(new ArrayBuffer(48))
    const text = { 0: 'RIFF', 8: 'WAVEfmt ', 36: 'data' }
    for (const [at, marks] of Object.entries(text))
      [...marks].forEach((mark, index) => view.setUint8(Number(at) + index, mark.charCodeAt(0)))
    const words = { 4: 40, 16: 16, 24: 8000, 28: 16_000, 40: 4 }
    for (const [at, value] of Object.entries(words)) view.setUint32(Number(at), value, true)
    // Whole numbers, 1 channel, 2 bytes a frame, 16 bits, and two samples.
    const halfWords = { 20: 1, 22: 1, 32: 2, 34: 16, 44: 0x4000, 46: 0x2000 }
    for (const [at, value] of Object.entries(halfWords)) view.setUint16(Number(at), value, true)
    const sound = await toPageSound(new Blob([view], { type: 'audio/wav' }), 'inputs.x')
    expect(sound.sampleRate).toBe(8000)
    expect([...sound.data].map((sample) => Math.round(sample * 1000))).toEqual([500, 250])
  })

  test('that the browser cannot decode is rejected by name', async () => {
    const file = new Blob(['no sound'], { type: 'audio/ogg' })
    await expect(toPageSound(file, 'inputs.x')).rejects.toThrow(
      'inputs.x: this browser cannot decode its sound (audio/ogg). Send wav, mp3, m4a, ogg, flac or webm.',
    )
  })
})
