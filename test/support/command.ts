/** Runs the commands that compare the project with files of a folder. */

/**
 * Runs a command and sets the exit status: 0 if `main` resolves with `true`, else 1. A message says what
 * went wrong, with the usage if it was the arguments.
 */
export async function runCommand<Arguments>(
  usage: string,
  readArguments: () => Arguments,
  main: (given: Arguments) => Promise<boolean>,
): Promise<void> {
  let isRead = false
  try {
    const given = readArguments()
    isRead = true
    process.exitCode = (await main(given)) ? 0 : 1
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error)
    process.stderr.write(isRead ? `${what}\n` : `${what}\nUsage: ${usage}\n`)
    process.exitCode = 1
  }
}
