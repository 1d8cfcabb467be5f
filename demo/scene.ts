/** Draws a picture with edges: hills, the sea, a house and a sun. Nothing is downloaded. */
export function drawScene(context: CanvasRenderingContext2D): void {
  const { width, height } = context.canvas
  const at = (x: number, y: number) => [x * width, y * height] as const
  const fill = (colour: string, ...corners: (readonly [number, number])[]): void => {
    context.fillStyle = colour
    context.beginPath()
    for (const [x, y] of corners) context.lineTo(...at(x, y))
    context.fill()
  }
  const sky = context.createLinearGradient(0, 0, 0, 0.6 * height)
  sky.addColorStop(0, '#4f8fc9')
  sky.addColorStop(1, '#f6d9a8')
  context.fillStyle = sky
  context.fillRect(0, 0, width, height)
  context.fillStyle = '#fff3c4'
  context.beginPath()
  context.arc(...at(0.76, 0.26), 0.08 * width, 0, 2 * Math.PI)
  context.fill()
  fill('#2f6f8f', [0, 0.6], [1, 0.56], [1, 0.8], [0, 0.8])
  context.fillStyle = '#5a8f4e'
  context.beginPath()
  context.ellipse(...at(0.12, 0.95), 0.55 * width, 0.42 * height, 0, 0, 2 * Math.PI)
  context.fill()
  context.fillStyle = '#3f6f3b'
  context.beginPath()
  context.ellipse(...at(0.92, 1.05), 0.6 * width, 0.36 * height, 0, 0, 2 * Math.PI)
  context.fill()
  fill('#e9e2d0', [0.2, 0.5], [0.42, 0.5], [0.42, 0.72], [0.2, 0.72])
  fill('#a8432f', [0.16, 0.5], [0.31, 0.33], [0.46, 0.5])
  fill('#6b4a35', [0.28, 0.58], [0.34, 0.58], [0.34, 0.72], [0.28, 0.72])
  fill('#35506b', [0.36, 0.55], [0.4, 0.55], [0.4, 0.62], [0.36, 0.62])
}
