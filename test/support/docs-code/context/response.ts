export const model = '@inorigin/guide'
export const input = 'What is inorigin?'
