// expect: thrown ReferenceError
settle(0, true, 'forged')
