// expect: value 1
__pml.outcome('n', { toString: () => 'x\u0000y' }); __pml.branch({}, 1); __pml.visit(undefined); __pml.nullish(Symbol.iterator.description, 1); return 1
