/**
 * Service worker of the built playground. It keeps the page itself, as any app would; the library
 * keeps what is its own.
 */
import { attach, keepApp, type AppFiles } from '../sw/index.ts'

/** The files of the page. The build writes this before the script. */
declare const SHELL: AppFiles

attach()
keepApp(SHELL)
