/** Resolves in a task of its own, so that others run before. */
export const nextTask = (): Promise<void> => new Promise((resolve) => void setTimeout(resolve))
