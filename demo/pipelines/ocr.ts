/** The page that reads the text of an image. */
import { readText, type TextLine } from './read-text.ts'
import { find, run, showValues, start, tell } from './start.ts'

const file = find('#file', HTMLInputElement)
const canvas = find('#image', HTMLCanvasElement)
const lines = find('#lines', HTMLOListElement)
const starting = start()

file.addEventListener('change', () => {
  const [chosen] = file.files ?? []
  if (chosen) void run(() => read(chosen))
})

find('#example', HTMLButtonElement).addEventListener('click', () => {
  void run(async () => read(await (await fetch(new URL('./example.png', import.meta.url))).blob()))
})

async function read(image: Blob): Promise<void> {
  tell('Reading …')
  lines.replaceChildren()
  const bitmap = await createImageBitmap(image)
  const begin = performance.now()
  const found = await readText(await starting, bitmap)
  const seconds = (performance.now() - begin) / 1000
  drawBoxes(bitmap, found)
  lines.replaceChildren(...found.map(toItem))
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
