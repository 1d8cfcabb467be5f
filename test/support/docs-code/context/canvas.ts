/** A canvas with a seven, white on black as the digits are that the predictor knows. */
export const canvas = document.createElement('canvas')
canvas.width = canvas.height = 280
document.body.append(canvas)
const pen = canvas.getContext('2d')
if (!pen) throw new Error('This browser draws nothing.')
pen.fillRect(0, 0, 280, 280)
pen.strokeStyle = 'white'
pen.lineWidth = 24
pen.lineJoin = 'round'
pen.beginPath()
pen.moveTo(80, 70)
pen.lineTo(200, 70)
pen.lineTo(120, 220)
pen.stroke()
