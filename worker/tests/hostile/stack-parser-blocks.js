// expect: limit stack|memory|thrown
return eval('{'.repeat(2e5))
