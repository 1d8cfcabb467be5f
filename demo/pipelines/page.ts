/** The parts that the pages of both pipelines have: controls, a message, a drawing and results. */
import { button, element } from '../dom.ts'

export interface PageOptions {
  /** Label of the file. */
  label: string
  /** Media types of the file. */
  accept: string
  /** Address of the example. */
  example: URL
  /** Runs the pipeline with the file that the user chose, or with the example. */
  use(file: Blob): Promise<void>
}

export interface PipelinePage {
  /** Row of the controls. */
  controls: HTMLElement
  canvas: HTMLCanvasElement
  /** List of the results. */
  list: HTMLOListElement
  /** Shows a message below the controls. */
  tell(message: string): void
  /** Shows the values as JSON. */
  showValues(values: unknown): void
  /** Runs an action and shows its error, with its code if it has one. */
  run(action: () => Promise<void>): Promise<void>
}

/** Adds the parts below the description of the page. */
export function createPage({ label, accept, example, use }: PageOptions): PipelinePage {
  const controls = element('p', '')
  const status = element('p', '')
  const canvas = element('canvas', '')
  const list = element('ol', '')
  const { details, values } = createValues()
  controls.append(
    createChooser(label, accept, (file) => void run(() => use(file))),
    Object.assign(
      button('Use the example', '', () => void run(useExample)),
      { id: 'example' },
    ),
  )
  status.id = 'status'
  status.role = 'status'
  canvas.width = 0
  canvas.height = 0
  list.id = 'results'
  document.querySelector('main')?.append(controls, status, canvas, list, details)

  async function useExample(): Promise<void> {
    await use(await (await fetch(example)).blob())
  }

  function tell(message: string): void {
    status.textContent = message
  }

  async function run(action: () => Promise<void>): Promise<void> {
    try {
      await action()
    } catch (error) {
      const { code, message } = error as { code?: string; message: string }
      tell(code === undefined ? message : `${code}: ${message}`)
    }
  }

  return {
    controls,
    canvas,
    list,
    tell,
    showValues(given) {
      values.textContent = JSON.stringify(given)
    },
    run,
  }
}

function createChooser(label: string, accept: string, use: (file: File) => void): HTMLElement {
  const box = element('label', '', `${label} `)
  const input = element('input', '')
  Object.assign(input, { id: 'file', type: 'file', accept })
  input.addEventListener('change', () => {
    const [chosen] = input.files ?? []
    if (chosen) use(chosen)
  })
  box.append(input)
  return box
}

function createValues(): { details: HTMLElement; values: HTMLElement } {
  const details = element('details', '')
  const values = element('pre', '')
  values.id = 'values'
  details.append(element('summary', '', 'All values'), values)
  return { details, values }
}
