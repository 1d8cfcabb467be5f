/** Drawings that the embedded model sees. They are drawn on a canvas in the page. */

export interface Drawing {
  /** PNG as a data URL. */
  url: string
  /** The buttons of a dialog by label. */
  buttons?: Record<string, Edges>
}

/** Edges in percent of the sides of a drawing. */
interface Edges {
  left: number
  top: number
  right: number
  bottom: number
}

type DrawingName =
  | 'shapes' // a red circle and a green triangle
  | 'stars' // three blue stars
  | 'word' // the word HELLO
  | 'line' // a word and a number: Pluto 58
  | 'price' // a price: $12.80
  | 'chart' // bars A, B and C, of which B is the largest
  | 'dialog' // a dialog with the title Question and the button Save
  | 'choice' // a dialog with the title Warning and the buttons Cancel and Delete
  | 'full' // a dialog with a title of two words, Disk full, and the button Close
  | 'wide' // 16:9: a red circle at the top right, and a green square at the bottom left
  | 'high' // 9:16: a blue circle at the top
  | 'banner' // 3:1: a price, $7.50
  | 'texture' // noise of several sizes, which is no simple drawing

export type Drawings = Record<DrawingName, () => Drawing>

/** Sets `drawings` in the page. It runs there, so it stands alone. */
export function defineDrawings(): void {
  const SIDE = 256
  const RED = '#d62728'
  const GREEN = '#22963c'
  const BLUE = '#1e50dc'

  function draw(
    ground: string,
    paint: (pen: CanvasRenderingContext2D) => void,
    [width, height]: readonly [number, number] = [SIDE, SIDE],
  ): string {
    const canvas = document.createElement('canvas')
    canvas.width = width
    canvas.height = height
    const pen = canvas.getContext('2d')!
    pen.fillStyle = ground
    pen.fillRect(0, 0, width, height)
    pen.textBaseline = 'top'
    paint(pen)
    return canvas.toDataURL()
  }

  function disk(
    pen: CanvasRenderingContext2D,
    [x, y]: readonly [number, number],
    radius: number,
  ): void {
    pen.beginPath()
    pen.arc(x, y, radius, 0, 2 * Math.PI)
    pen.fill()
  }

  /** Draws corners around a place, at distances that take turns. */
  function polygon(
    pen: CanvasRenderingContext2D,
    [x, y]: readonly [number, number],
    corners: number,
    radii: readonly number[],
  ): void {
    pen.beginPath()
    for (let corner = 0; corner < corners; corner += 1) {
      const radius = radii[corner % radii.length] ?? 0
      const angle = (2 * Math.PI * corner) / corners - Math.PI / 2
      pen.lineTo(x + radius * Math.cos(angle), y + radius * Math.sin(angle))
    }
    pen.fill()
  }

  function write(
    pen: CanvasRenderingContext2D,
    text: string,
    [x, y]: readonly [number, number],
    size: number,
  ): void {
    pen.font = `${size}px sans-serif`
    pen.fillText(text, x, y)
  }

  /** Returns a square of that side whose pixels are always the same noise. */
  function noise(side: number): HTMLCanvasElement {
    const canvas = document.createElement('canvas')
    canvas.width = canvas.height = side
    const pixels = new ImageData(side, side)
    let state = side
    for (let at = 0; at < pixels.data.length; at += 1) {
      state = (state * 48_271) % 2_147_483_647
      pixels.data[at] = at % 4 === 3 ? 255 : (state >> 16) & 255
    }
    canvas.getContext('2d')!.putImageData(pixels, 0, 0)
    return canvas
  }

  /** Draws a dialog. Each button has its left and right edge. */
  function dialog(
    title: string,
    message: string,
    places: Record<string, readonly [number, number]>,
  ): Drawing {
    const [top, bottom] = [156, 188]
    const url = draw('#808080', (pen) => {
      const box = (fill: string, x: number, y: number, width: number, height: number): void => {
        pen.fillStyle = fill
        pen.fillRect(x, y, width, height)
      }
      box('#fafafa', 30, 48, 196, 152)
      pen.strokeRect(30.5, 48.5, 195, 151)
      box(BLUE, 30, 48, 196, 31)
      pen.fillStyle = '#fafafa'
      write(pen, title, [39, 54], 18)
      pen.fillStyle = '#0f0f0f'
      write(pen, message, [43, 92], 18)
      for (const [label, [left, right]] of Object.entries(places)) {
        box(GREEN, left, top, right - left, bottom - top)
        pen.strokeRect(left, top, right - left, bottom - top)
        pen.fillStyle = '#fafafa'
        write(pen, label, [left + 14, 162], 18)
      }
    })
    const percent = (pixels: number): number => (100 * pixels) / SIDE
    const buttons: Record<string, Edges> = {}
    for (const [label, [left, right]] of Object.entries(places)) {
      const edges = { left: percent(left), right: percent(right) }
      buttons[label] = { ...edges, top: percent(top), bottom: percent(bottom) }
    }
    return { url, buttons }
  }

  type Paint = (pen: CanvasRenderingContext2D) => void

  /** Returns a drawing on white paper. */
  const onPaper =
    (paint: Paint, size?: readonly [number, number]): (() => Drawing) =>
    () => ({ url: draw('#fafafa', paint, size) })

  const fill =
    (color: string, paint: Paint): Paint =>
    (pen) => {
      pen.fillStyle = color
      paint(pen)
    }

  /** Returns a drawing of a text. */
  const textOf = (
    text: string,
    place: readonly [number, number],
    points: number,
    size?: readonly [number, number],
  ) =>
    onPaper(
      fill('#0f0f0f', (pen) => write(pen, text, place, points)),
      size,
    )

  const STAR_CENTERS = [
    [60, 70],
    [190, 60],
    [128, 190],
  ] as const

  const drawings: Drawings = {
    dialog: () => dialog('Question', 'Save file?', { Save: [130, 204] }),
    full: () => dialog('Disk full', 'Delete files?', { Close: [130, 204] }),
    choice: () => dialog('Warning', 'Delete file?', { Cancel: [38, 126], Delete: [134, 218] }),
    shapes: onPaper((pen) => {
      fill(RED, () => disk(pen, [70, 70], 42))(pen)
      fill(GREEN, () => polygon(pen, [186, 190], 3, [50]))(pen)
    }),
    stars: onPaper(
      fill(BLUE, (pen) => {
        for (const center of STAR_CENTERS) polygon(pen, center, 10, [38, 16])
      }),
    ),
    word: textOf('HELLO', [52, 104], 40),
    line: textOf('Pluto 58', [48, 108], 36),
    price: textOf('$12.80', [52, 104], 44),
    banner: textOf('$7.50', [170, 50], 64, [512, 171]),
    chart: onPaper((pen) => {
      const values = { A: 40, B: 90, C: 60 }
      for (const [at, [label, value]] of Object.entries(values).entries()) {
        const x = 24 + at * 76
        const height = 2 * value
        pen.fillStyle = BLUE
        pen.fillRect(x, 222 - height, 54, height)
        pen.fillStyle = '#0f0f0f'
        write(pen, label, [x + 21, 226], 18)
        write(pen, String(value), [x + 17, 200 - height], 18)
      }
      pen.fillRect(10, 222, 238, 2)
    }),
    wide: onPaper(
      (pen) => {
        fill(RED, () => disk(pen, [420, 66], 50))(pen)
        fill(GREEN, () => pen.fillRect(50, 180, 84, 84))(pen)
      },
      [512, 288],
    ),
    high: onPaper(
      fill(BLUE, (pen) => disk(pen, [144, 80], 56)),
      [288, 512],
    ),
    texture: () => ({
      url: draw('#808080', (pen) => {
        for (const [at, side] of [4, 16, 64].entries()) {
          pen.globalAlpha = 0.5 ** at
          pen.drawImage(noise(side), 0, 0, SIDE, SIDE)
        }
      }),
    }),
  }
  Object.assign(globalThis, { drawings })
}
