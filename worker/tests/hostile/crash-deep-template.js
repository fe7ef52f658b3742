// expect: limit stack|memory|thrown
return eval('`${'.repeat(2e4) + '1' + '}`'.repeat(2e4))
