// expect: thrown ReferenceError
return await import('/etc/passwd')
