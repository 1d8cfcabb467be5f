/** The page that shows where somebody speaks in a file, or into the microphone. */
import { findSegments, listen, type Sound, WINDOW_SECONDS } from './find-speech.ts'
import { microphone, soundOf } from './sounds.ts'
import { find, run, showValues, start, tell } from './start.ts'

const file = find('#file', HTMLInputElement)
const canvas = find('#probabilities', HTMLCanvasElement)
const list = find('#segments', HTMLOListElement)
const stop = find('#stop', HTMLButtonElement)
const starting = start()

file.addEventListener('change', () => {
  const [chosen] = file.files ?? []
  if (chosen) void run(async () => show(await soundOf(chosen)))
})

find('#example', HTMLButtonElement).addEventListener('click', () => {
  void run(async () =>
    show(await soundOf(await (await fetch(new URL('./example.wav', import.meta.url))).blob())),
  )
})

find('#microphone', HTMLButtonElement).addEventListener('click', () => {
  const stopping = new AbortController()
  stop.hidden = false
  stop.onclick = () => stopping.abort()
  void run(async () => show(microphone(stopping.signal))).finally(() => (stop.hidden = true))
})

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
