// expect: value 0|limit memory|thrown
return eval('var ' + 'a'.repeat(5e6) + ' = 0; 0')
