/** Draws a picture that the embedded model can describe. Nothing is downloaded. */

const SIDE = 256

/** Returns a drawing of a red circle, a blue square and a yellow star, as a data URL. */
export function drawShapes(): string {
  const canvas = document.createElement('canvas')
  canvas.width = canvas.height = SIDE
  const context = canvas.getContext('2d')
  if (!context) throw new Error('This browser cannot draw.')
  context.fillStyle = '#fafafa'
  context.fillRect(0, 0, SIDE, SIDE)
  context.fillStyle = '#d62728'
  context.beginPath()
  context.arc(56, 60, 36, 0, 2 * Math.PI)
  context.fill()
  context.fillStyle = '#1e50dc'
  context.fillRect(168, 28, 64, 64)
  context.fillStyle = '#f5d71e'
  context.beginPath()
  for (let corner = 0; corner < 10; corner += 1) {
    const radius = corner % 2 === 0 ? 46 : 19
    const angle = (corner * Math.PI) / 5 - Math.PI / 2
    context.lineTo(128 + radius * Math.cos(angle), 196 + radius * Math.sin(angle))
  }
  context.fill()
  return canvas.toDataURL()
}
