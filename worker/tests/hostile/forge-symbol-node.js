// expect: thrown TypeError
__pml.visit(Symbol('n'))
