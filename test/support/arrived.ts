/** Time for messages between ports of one Node process, whatever the clock says. */
export async function arrived(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}
