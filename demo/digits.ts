import type { LoadProgress, Server } from '../src/index.ts'
import { createBar } from './bars.ts'
import { byId } from './dom.ts'
import { exampleDigit } from './examples.ts'
import { preparing, runTime } from './format.ts'
import { createLatest } from './latest.ts'
import { wordsOf } from './notice.ts'
import { createPad } from './pad.ts'

const TAG = '@inorigin/digits'

/** Creates the part that recognizes a drawn digit with `server.predict`. */
export function createDigits(starting: Promise<Server>): void {
  const verdict = byId('verdict', HTMLElement)
  const bars = createBars()
  const pad = createPad(byId('pad', HTMLCanvasElement), () => void predict())
  const latest = createLatest()

  async function predict(): Promise<void> {
    const signal = latest.begin()
    const onProgress = (progress: LoadProgress): void => {
      if (!signal.aborted) verdict.textContent = preparing(progress)
    }
    try {
      const server = await starting
      if (signal.aborted) return
      const result = await server.predict(TAG, { image: pad.canvas }, { signal, onProgress })
      if (signal.aborted) return
      const scores = toNumbers(result.outputs['scores'])
      const best = scores.indexOf(Math.max(...scores))
      bars.show(scores, best)
      const name = String(result.outputs['digit'])
      const percent = Math.round(100 * (scores[best] ?? 0))
      verdict.textContent = `${capital(name)}, ${percent} % · ${runTime(result)}`
    } catch (error) {
      if (!signal.aborted) verdict.textContent = wordsOf(error)
    }
  }

  byId('pad-example', HTMLButtonElement).addEventListener('click', () => pad.draw(exampleDigit()))
  byId('pad-clear', HTMLButtonElement).addEventListener('click', () => {
    latest.giveUp()
    pad.clear()
    bars.show([], -1)
    verdict.textContent = ''
  })
}

interface Bars {
  show(scores: readonly number[], best: number): void
}

function createBars(): Bars {
  const rows = Array.from({ length: 10 }, (_unused, digit) =>
    createBar(String(digit), `Score of ${digit}`),
  )
  byId('scores', HTMLElement).replaceChildren(...rows.map(({ item }) => item))
  return {
    show(scores, best) {
      rows.forEach((row, digit) => {
        row.show(scores[digit])
        row.item.classList.toggle('best', digit === best)
      })
    },
  }
}

/** Returns the elements of an output that is a tensor. */
function toNumbers(tensor: unknown): number[] {
  const { data } = tensor as { data: ArrayLike<number> }
  return Array.from(data)
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
