// expect: thrown TypeError
__pml.at = null
