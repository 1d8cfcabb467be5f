/** Part of a regular expression that is not supported. The message has the form "a backreference at character 5". */
export class PatternError extends Error {
  override name = 'PatternError'
}
