/** Shows a dialog over the page, and removes it when it is closed. Escape closes it. */
export function showModal(dialog: HTMLDialogElement): void {
  dialog.addEventListener('keydown', keepEscape)
  dialog.addEventListener('close', () => dialog.remove(), { once: true })
  document.body.append(dialog)
  dialog.showModal()
}

/** Keeps Escape in a dialog. Behind it, Escape would stop the answer. */
export function keepEscape(event: KeyboardEvent): void {
  if (event.key === 'Escape') event.stopPropagation()
}
