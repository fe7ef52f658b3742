// expect: value false
return String(new Error().stack).includes('pml:')
