/** The page that reads the text of an image. */
import { createPage } from './page.ts'
import { readText, type TextLine } from './read-text.ts'
import { start } from './start.ts'

const starting = start()
const { canvas, list, tell, showValues } = createPage({
  label: 'Image',
  accept: 'image/*',
  example: new URL('./example.png', import.meta.url),
  use: read,
})

async function read(image: Blob): Promise<void> {
  tell('Reading …')
  list.replaceChildren()
  const bitmap = await createImageBitmap(image)
  const begin = performance.now()
  const found = await readText(await starting, bitmap)
  const seconds = (performance.now() - begin) / 1000
  drawBoxes(bitmap, found)
  list.replaceChildren(...found.map(toItem))
  showValues(found)
  tell(`${found.length} lines in ${seconds.toFixed(1)} s.`)
}

function toItem({ text, score, isTurned }: TextLine): HTMLLIElement {
  const item = document.createElement('li')
  item.textContent = text
  item.title = `Score ${score.toFixed(3)}${isTurned ? ', upside down' : ''}`
  return item
}

function drawBoxes(image: ImageBitmap, found: readonly TextLine[]): void {
  const scale = Math.min(1, 960 / Math.max(image.width, image.height))
  canvas.width = Math.round(image.width * scale)
  canvas.height = Math.round(image.height * scale)
  const drawing = canvas.getContext('2d')
  if (!drawing) return
  drawing.drawImage(image, 0, 0, canvas.width, canvas.height)
  drawing.strokeStyle = 'crimson'
  for (const { left, top, width, height } of found) drawing.strokeRect(left, top, width, height)
}
