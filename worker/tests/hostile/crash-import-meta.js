// expect: thrown SyntaxError
return import.meta
