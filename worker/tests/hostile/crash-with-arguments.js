// expect: thrown SyntaxError
with ({}) { }
