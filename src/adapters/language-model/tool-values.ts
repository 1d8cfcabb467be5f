/** Calls of tools and their results as values of messages, for tools that the page runs itself. */

interface ToolCallInit {
  callID: string
  name: string
  arguments?: object
}

/** A part of a result: a text, or a value that JSON can have. */
export interface LanguageModelToolResult {
  type: 'text' | 'object'
  value: unknown
}

interface ToolSuccessInit {
  callID: string
  name: string
  result: LanguageModelToolResult[]
}

interface ToolErrorInit {
  callID: string
  name: string
  errorMessage: string
}

/** A call that the model made. */
export class LanguageModelToolCall {
  readonly callID: string
  readonly name: string
  readonly arguments: object

  constructor({ callID, name, arguments: given }: ToolCallInit) {
    this.callID = String(callID)
    this.name = String(name)
    this.arguments = given ?? {}
  }
}

/** The result of a call. */
export class LanguageModelToolSuccess {
  readonly callID: string
  readonly name: string
  readonly result: readonly LanguageModelToolResult[]

  constructor({ callID, name, result }: ToolSuccessInit) {
    this.callID = String(callID)
    this.name = String(name)
    this.result = [...result]
  }
}

/** The failure of a call. */
export class LanguageModelToolError {
  readonly callID: string
  readonly name: string
  readonly errorMessage: string

  constructor({ callID, name, errorMessage }: ToolErrorInit) {
    this.callID = String(callID)
    this.name = String(name)
    this.errorMessage = String(errorMessage)
  }
}
