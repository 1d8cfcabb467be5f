/** The page that shows where somebody speaks in a file, or into the microphone. */
import { button } from '../dom.ts'
import { findSegments, listen, type Sound, WINDOW_SECONDS } from './find-speech.ts'
import { createPage } from './page.ts'
import { microphone, soundOf } from './sounds.ts'
import { start } from './start.ts'

const starting = start()
const { controls, canvas, list, tell, showValues, run } = createPage({
  label: 'Sound',
  accept: 'audio/*',
  example: new URL('./example.wav', import.meta.url),
  use: async (file) => show(await soundOf(file)),
})

canvas.id = 'probabilities'
canvas.width = 600
canvas.height = 80
addMicrophone()

function addMicrophone(): void {
  let stopping = new AbortController()
  const stop = button('Stop', '', () => stopping.abort())
  const begin = button('Use the microphone', '', () => {
    stopping = new AbortController()
    stop.hidden = false
    void run(async () => show(microphone(stopping.signal))).finally(() => (stop.hidden = true))
  })
  stop.hidden = true
  controls.append(begin, stop)
}

async function show(sounds: AsyncIterable<Sound> | Iterable<Sound>): Promise<void> {
  tell('Listening …')
  const probabilities: number[] = []
  for await (const more of listen(await starting, sounds)) {
    probabilities.push(...more)
    draw(probabilities)
    const segments = findSegments(probabilities)
    list.replaceChildren(...segments.map(({ from, to }) => toItem(from, to)))
  }
  const segments = findSegments(probabilities)
  showValues({ probabilities, segments })
  const seconds = probabilities.length * WINDOW_SECONDS
  tell(`${segments.length} segments in ${seconds.toFixed(1)} s of sound.`)
}

function toItem(from: number, to: number | null): HTMLLIElement {
  const item = document.createElement('li')
  item.textContent = `${from.toFixed(2)} s to ${to === null ? 'the end' : `${to.toFixed(2)} s`}`
  return item
}

/** Draws the last probabilities, one pixel for each. */
function draw(probabilities: readonly number[]): void {
  const drawing = canvas.getContext('2d')
  if (!drawing) return
  drawing.clearRect(0, 0, canvas.width, canvas.height)
  drawing.fillStyle = 'crimson'
  for (const [x, probability] of probabilities.slice(-canvas.width).entries()) {
    const height = probability * canvas.height
    drawing.fillRect(x, canvas.height - height, 1, height)
  }
}
