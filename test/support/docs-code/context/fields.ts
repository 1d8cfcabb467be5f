export const input = document.createElement('input')
input.type = 'file'
