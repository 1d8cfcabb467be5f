/**
 * Shows a dialog over the page, and removes it when it is closed. Escape closes it and reaches
 * nothing behind it, where it would stop the answer.
 */
export function showModal(dialog: HTMLDialogElement): void {
  dialog.addEventListener('keydown', keepEscape)
  dialog.addEventListener('close', () => dialog.remove(), { once: true })
  document.body.append(dialog)
  dialog.showModal()
}

function keepEscape(event: KeyboardEvent): void {
  if (event.key === 'Escape') event.stopPropagation()
}
