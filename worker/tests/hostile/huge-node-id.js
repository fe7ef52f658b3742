// expect: value 1
// limits: memory=64MiB
__pml.visit('n'.repeat(1e6)); return 1
