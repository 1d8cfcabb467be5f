import type { BridgeState } from 'inorigin'

export const button = document.createElement('button')
export const stop = document.createElement('button')
export const input = document.createElement('input')
export const showLent = (status: BridgeState['status'], requests: number): void => {
  stop.hidden = status === 'closed'
  stop.textContent = `Stop (${requests})`
}
