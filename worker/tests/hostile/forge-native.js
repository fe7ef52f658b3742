// expect: thrown ReferenceError
native.call('tool', 'x', null, {})
